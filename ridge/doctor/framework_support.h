// FrameworkSupport: which releases of a framework run on a device that may not be here, by the
// table of versions (compat.toml), and what their installation downloads (installs.toml).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/doctor/compat.h"

namespace ridge {

// A release that has code for a device.
struct FrameworkBuild {
  std::string version;  // "2.14"
  std::string toolkit;  // "CUDA 13.2", "ROCm 6.3"
  std::string driver;   // the least on Linux; "" when not known
  std::string python;   // "3.10-3.13"; "" when not known
  // The framework's own list of architectures, or runs of it, say so.  False: its compiler knows
  // the architecture, which a release may have left out.
  bool is_listed = false;
  bool is_compiled_there = false;     // it has PTX for the device, which is compiled when it starts
  const CompatRow* row = nullptr;     // of the release
  const CompatRow* code = nullptr;    // that says for what it has code; may be `row`
  const CompatRow* needed = nullptr;  // of the driver; may be nullptr
};

// Of "torch", "tf", "jax" or "paddle" on `architecture`: a compute capability, "9.0", or a target
// of ROCm's, "gfx942".
struct FrameworkSupport {
  // The oldest and the newest of the releases in the table that run there.  Of equal releases those
  // with a list come first, then the newer toolkit.
  // No `least`: the table begins with `begins`, which runs there.
  std::optional<FrameworkBuild> least, newest;
  std::string begins;  // the oldest release that runs there; "" where none does
};

FrameworkSupport SupportOf(const std::string& program, const std::string& architecture);

// What pip, or another installer, downloads.
struct Install {
  std::string program;  // "torch"; "ridge" too
  std::string device;   // "cuda13", "cuda12" or "cpu"
  std::string version, requirement, python, date, confidence, source;
  int64_t packages = 0, bytes = 0;
};

// nullptr where nothing is known.
const Install* FindInstall(const std::string& program, const std::string& device);
const std::vector<Install>& Installs();  // in the order of the file

}  // namespace ridge

// registers.txt: what kernels take of each architecture, as one NVRTC compiles them.
#pragma once
#include <array>
#include <map>
#include <string>

#include "ridge/core/status.h"

namespace ridge::cuda_text {

inline constexpr std::array<const char*, 4> kArchitectures = {"sm_80", "sm_90", "sm_100", "sm_120"};

// The most of the compiled calls of a family: of one operator, layout and function.
struct Resources {
  std::array<int, kArchitectures.size()> registers = {};  // of a thread
  int spilled_bytes = 0;                                  // on any architecture
};

struct RegisterTable {
  std::string version;  // of NVRTC: "13.0"
  std::map<std::string, Resources> families;
};

Result<RegisterTable> ParseRegisters(const std::string& text);
std::string FormatRegisters(const RegisterTable& table);

}  // namespace ridge::cuda_text

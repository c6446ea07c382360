// A framework runs on a GPU when its libraries have code for it.  What a release has code for is
// known of few; else the release has no more than its CUDA's compiler knows.
#include "ridge/doctor/framework_support.h"

#include <algorithm>
#include <tuple>

#include "ridge/doctor/frameworks.h"
#include "ridge/doctor/install_list.h"
#include "ridge/plan/hardware/embedded_list.h"

namespace ridge {
namespace {

struct ProgramTables {
  const char* program;
  std::vector<std::string> builds;  // rows with the CUDA of a release
  const char* code;                 // rows with the architectures of a release
  const char* rocm_name;            // in the notes of rocm_framework
};

const ProgramTables* FindTables(const std::string& program) {
  static const std::vector<ProgramTables> all = {
      {"torch", {"pytorch", "pytorch_wheel_cuda"}, "pytorch_wheel_arch", "PyTorch"},
      {"tf", {"tensorflow_gpu"}, "tensorflow_wheel_arch", "TensorFlow"},
      {"jax", {"jax_gpu"}, "jax_wheel_arch", "JAX"},
      {"paddle", {"paddle_gpu"}, "paddle_wheel_arch", "PaddlePaddle"}};
  const auto found = std::find_if(all.begin(), all.end(), [&](const ProgramTables& tables) {
    return tables.program == program;
  });
  return found == all.end() ? nullptr : &*found;
}

bool IsOneOf(const std::string& name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The release's own list, else its compiler's; nullptr where neither is known.
const CompatRow* CodeOf(const ProgramTables& tables, const CompatRow& build,
                        const std::string& cuda) {
  if (const CompatRow* own = FindCompat(tables.code, build.key, cuda)) return own;
  return FindCompat("cuda_arch", cuda);
}

// Whose Python is not in the row of the build, but in another of the release.
std::string PythonOf(const ProgramTables& tables, const CompatRow& build) {
  for (const std::string& table : tables.builds) {
    const CompatRow* row = FindCompat(table, build.key);
    if (row != nullptr && !row->python.empty()) return row->python;
  }
  return "";
}

std::vector<std::string> Binaries(const CompatRow& code) {
  std::vector<std::string> binaries = code.architectures;
  std::erase_if(binaries, [](const std::string& built) { return built.ends_with("+PTX"); });
  return binaries;
}

void AddCudaBuilds(const ProgramTables& tables, const std::string& architecture,
                   std::vector<FrameworkBuild>& builds) {
  for (const CompatRow& row : CompatRows()) {
    if (!IsOneOf(row.table, tables.builds)) continue;
    for (const std::string& cuda : row.cudas) {
      const CompatRow* code = CodeOf(tables, row, cuda);
      if (code == nullptr || !RunsOn(code->architectures, architecture)) continue;
      const CompatRow* driver = DriverFor(cuda);
      builds.push_back({.version = row.key,
                        .toolkit = "CUDA " + cuda,
                        .driver = driver == nullptr ? "" : driver->driver,
                        .python = PythonOf(tables, row),
                        .is_listed = code->table == tables.code,
                        .is_compiled_there = !RunsOn(Binaries(*code), architecture),
                        .row = &row,
                        .code = code,
                        .needed = driver});
    }
  }
}

// Of the same release of ROCm.
const CompatRow* TargetsOf(const std::string& rocm) { return FindCompat("rocm_gfx", rocm); }

void AddRocmBuild(const CompatRow& row, const std::string& version, const std::string& gfx,
                  const std::string& python, std::vector<FrameworkBuild>& builds) {
  const CompatRow* targets = TargetsOf(row.rocm);
  if (targets == nullptr || !IsOneOf(gfx, targets->gfx)) return;
  builds.push_back({.version = version,
                    .toolkit = "ROCm " + row.rocm,
                    .driver = "",
                    .python = python,
                    .is_listed = true,
                    .is_compiled_there = false,
                    .row = &row,
                    .code = targets,
                    .needed = nullptr});
}

void AddRocmBuilds(const ProgramTables& tables, const std::string& gfx,
                   std::vector<FrameworkBuild>& builds) {
  for (const CompatRow& row : CompatRows()) {
    if (row.table == "rocm_framework") {
      for (const std::string& version : VersionsIn(row.notes, tables.rocm_name))
        AddRocmBuild(row, version, gfx, "", builds);
    } else if (row.table == "pytorch" && IsOneOf("pytorch", tables.builds) && !row.rocm.empty()) {
      AddRocmBuild(row, row.key, gfx, row.python, builds);
    }
  }
}

// Oldest first; of a release those with a list after those without, newer toolkits after older
// ones.
std::vector<FrameworkBuild> BuildsFor(const ProgramTables& tables, const std::string& architecture,
                                      bool is_rocm) {
  std::vector<FrameworkBuild> builds;
  if (is_rocm) {
    AddRocmBuilds(tables, architecture, builds);
  } else {
    AddCudaBuilds(tables, architecture, builds);
  }
  const auto rank = [](const FrameworkBuild& build) {
    return std::tuple(Version(build.version), build.is_listed,
                      Version(build.toolkit.substr(build.toolkit.find(' ') + 1)));
  };
  std::stable_sort(builds.begin(), builds.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return builds;
}

// Of the table, whatever it runs on.
Version OldestRelease(const ProgramTables& tables, bool is_rocm) {
  Version oldest;
  const auto take = [&](const std::string& version) {
    if (oldest.numbers.empty() || Version(version) < oldest) oldest = Version(version);
  };
  for (const CompatRow& row : CompatRows()) {
    if (IsOneOf(row.table, tables.builds)) take(row.key);
    if (!is_rocm || row.table != "rocm_framework") continue;
    for (const std::string& version : VersionsIn(row.notes, tables.rocm_name)) take(version);
  }
  return oldest;
}

// The release that was seen to run there, where that is known.
void TakeFloor(const ProgramTables& tables, const std::string& architecture,
               FrameworkSupport& support) {
  for (const CompatRow& row : CompatRows()) {
    if (row.table != tables.code || row.least.empty()) continue;
    if (!IsOneOf(architecture, row.architectures)) continue;
    FrameworkBuild least = support.least.value_or(FrameworkBuild());
    least.version = row.least;
    if (!row.cuda.empty()) least.toolkit = "CUDA " + row.cuda;
    least.is_listed = true;
    least.is_compiled_there = false;
    least.row = least.code = &row;
    support.least = least;
    return;
  }
}

Install InstallOf(const toml::table& row) {
  return {.program = TextAt(row, "program"),
          .device = TextAt(row, "device"),
          .version = TextAt(row, "version"),
          .requirement = TextAt(row, "requirement"),
          .python = TextAt(row, "python"),
          .date = TextAt(row, "date"),
          .confidence = TextAt(row, "confidence"),
          .source = TextAt(row, "source"),
          .packages = row["packages"].value<int64_t>().value_or(0),
          .bytes = row["bytes"].value<int64_t>().value_or(0)};
}

}  // namespace

FrameworkSupport SupportOf(const std::string& program, const std::string& architecture) {
  FrameworkSupport support;
  const ProgramTables* tables = FindTables(program);
  if (tables == nullptr || architecture.empty()) return support;
  const bool is_rocm = architecture.starts_with("gfx");
  const std::vector<FrameworkBuild> builds = BuildsFor(*tables, architecture, is_rocm);
  if (builds.empty()) return support;
  support.newest = builds.back();
  support.begins = builds.front().version;
  // A table that begins with this release says nothing of those before it.
  if (const Version oldest(builds.front().version); OldestRelease(*tables, is_rocm) < oldest) {
    const auto best = std::find_if(builds.rbegin(), builds.rend(), [&](const auto& build) {
      return Version(build.version) == oldest;
    });
    support.least = *best;
  }
  if (!is_rocm) TakeFloor(*tables, architecture, support);
  return support;
}

const std::vector<Install>& Installs() {
  static const std::vector<Install> all =
      ReadEmbeddedList(kInstallList, "installs.toml", "install", InstallOf);
  return all;
}

const Install* FindInstall(const std::string& program, const std::string& device) {
  for (const Install& install : Installs()) {
    if (install.program == program && install.device == device) return &install;
  }
  return nullptr;
}

}  // namespace ridge

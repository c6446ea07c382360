#include "ridge/dist/mpirun.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <utility>

#include "ridge/core/files.h"
#include "ridge/core/shell.h"
#include "ridge/core/split.h"
#include "ridge/core/threads.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

std::string VersionBehind(const std::string& text, std::string_view mark) {
  size_t at = text.find(mark);
  if (at == std::string::npos) return "";
  at = text.find_first_not_of(" \t", at + mark.size());
  if (at == std::string::npos) return "";
  return text.substr(at, text.find_first_of(" \t\n", at) - at);
}

// The first program of one of these names that is of this MPI.
std::vector<Mpirun> FindOne(Mpi mpi, const std::string& folders, const VersionOf& version_of) {
  for (const std::string& name :
       {fmt::format("mpirun.{}", MpiId(mpi)), std::string("mpirun"), std::string("mpiexec")}) {
    for (const std::string_view folder : SplitAt(folders, ':')) {
      if (folder.empty()) continue;
      Mpirun found;
      found.path = fmt::format("{}/{}", folder, name);
      if (access(found.path.c_str(), X_OK) != 0) continue;
      const bool says = ParseMpirunVersion(version_of(found.path), found);
      if (says ? found.mpi != mpi : !name.ends_with(MpiId(mpi))) continue;
      found.mpi = mpi;
      return {found};
    }
  }
  return {};
}

}  // namespace

Result<std::string> OwnProgram() {
  std::error_code error;
  std::string program = fs::read_symlink("/proc/self/exe", error).string();
  if (!error) return program;
  return Status(ErrorCode::kUnavailable,
                fmt::format("/proc/self/exe: cannot be read: {}", error.message()));
}

namespace {

// The words of this process's own command, with the program's real path in front.
Result<std::vector<std::string>> OwnCommand() {
  constexpr int64_t kMostBytes = 1 << 22;
  RIDGE_ASSIGN_OR_RETURN(const std::string line, ReadFile("/proc/self/cmdline", kMostBytes));
  std::vector<std::string> words;
  for (const std::string_view word : SplitAt(line, '\0')) words.emplace_back(word);
  words.pop_back();  // behind the last end
  RIDGE_ASSIGN_OR_RETURN(words.at(0), OwnProgram());
  return words;
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::string AskVersion(const std::string& path) {
  std::string text;
  FILE* pipe = popen(("timeout 10 " + ShellQuoted(path) + " --version 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return text;
  constexpr size_t kMostBytes = 1 << 16;
  char buffer[4096];
  for (size_t got = 1; got > 0 && text.size() < kMostBytes; text.append(buffer, got))
    got = std::fread(buffer, 1, sizeof(buffer), pipe);
  (void)pclose(pipe);
  return text;
}

// "mpirun (Open MPI) 4.1.4", or "mpirun.openmpi (OpenRTE) 4.1.4" under another name; "HYDRA build
// details:\n  Version:  4.0.2".
bool ParseMpirunVersion(const std::string& text, Mpirun& mpirun) {
  for (const char* mark : {"(Open MPI)", "(OpenRTE)"}) {
    if (text.find(mark) == std::string::npos) continue;
    mpirun.mpi = Mpi::kOpenMpi;
    mpirun.version = VersionBehind(text, mark);
    return true;
  }
  mpirun.mpi = Mpi::kMpich;
  mpirun.version = VersionBehind(text, "Version:");
  return text.find("HYDRA") != std::string::npos;
}

std::vector<Mpirun> FindMpiruns(const std::string& folders, const VersionOf& version_of) {
  std::vector<Mpirun> found;
  for (const Mpi mpi : kAllMpis) {
    for (Mpirun& one : FindOne(mpi, folders, version_of)) found.push_back(std::move(one));
  }
  return found;
}

Result<Mpirun> ChooseMpirun(const std::vector<Mpirun>& found,
                            const std::function<bool(Mpi)>& has_plugin, int64_t ranks) {
  for (const Mpirun& one : found) {
    if (has_plugin(one.mpi)) return one;
  }
  if (!found.empty()) {
    const Mpirun& first = found.front();
    return Status(ErrorCode::kDevice,
                  fmt::format("--devices is {}: {} is here, its plug-in {} is not. hint: {}", ranks,
                              first.path, MpiPluginFile(first.mpi), MpiRemedy(first.mpi, true)));
  }
  const auto* ready = std::find_if(std::begin(kAllMpis), std::end(kAllMpis), has_plugin);
  const bool none = ready == std::end(kAllMpis);
  const Mpi wanted = none ? Mpi::kOpenMpi : *ready;
  return Status(ErrorCode::kDevice,
                fmt::format("--devices is {}, and there is no mpirun to start them. hint: {}",
                            ranks, MpiRemedy(wanted, none)));
}

std::vector<std::string> MpirunWords(const Mpirun& mpirun, const RankStart& start,
                                     const std::vector<std::string>& program) {
  std::vector<std::string> words = {mpirun.path, "-n", std::to_string(start.ranks)};
  const auto add = [&](std::initializer_list<const char*> more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  if (mpirun.mpi == Mpi::kOpenMpi) {
    add({"--quiet", "--bind-to", "none"});
    if (start.as_root) add({"--allow-run-as-root"});
    if (start.ranks > start.cores) add({"--oversubscribe"});
  } else {
    add({"-bind-to", "none"});
  }
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

int64_t PhysicalCores(const std::string& system) {
  std::set<std::pair<std::string, std::string>> cores;
  for (const int cpu : AllowedCpus(CPU_SETSIZE)) {
    const std::string folder =
        fmt::format("{}/sys/devices/system/cpu/cpu{}/topology/", system, cpu);
    const std::string core = FirstLine(folder + "core_id");
    cores.insert({FirstLine(folder + "physical_package_id"),
                  core.empty() ? fmt::format("cpu{}", cpu) : core});
  }
  return std::max<int64_t>(1, std::ssize(cores));
}

Result<Mpirun> FindMpirun(std::optional<Mpi> mpi, int64_t ranks) {
  const char* path = std::getenv("PATH");
  std::vector<Mpirun> found = FindMpiruns(path == nullptr ? "" : path, AskVersion);
  if (mpi) std::erase_if(found, [&](const Mpirun& one) { return one.mpi != *mpi; });
  return ChooseMpirun(
      found, [&](Mpi one) { return (!mpi || one == *mpi) && !FindMpiPlugin(one).empty(); }, ranks);
}

Status BecomeRanks(int64_t ranks) {
  RIDGE_ASSIGN_OR_RETURN(const Mpirun mpirun, FindMpirun(std::nullopt, ranks));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<std::string> program, OwnCommand());
  const std::vector<std::string> words =
      MpirunWords(mpirun, {ranks, PhysicalCores(), geteuid() == 0}, program);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::fflush(nullptr);
  execv(argv[0], argv.data());
  return Status(ErrorCode::kUnavailable,
                fmt::format("{}: cannot be started: {}", mpirun.path, std::strerror(errno)));
}

}  // namespace ridge

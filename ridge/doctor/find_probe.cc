#include "ridge/doctor/find_probe.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "oneapi/dnnl/dnnl.hpp"
#include "ridge/core/threads.h"
#include "ridge/core/version.h"

namespace ridge {

namespace probing {

bool Exists(const ProbePlace& place, const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(place.root + path, error);
}

// Files of /proc and /sys have no size, so the text is read as a stream.
std::string Text(const ProbePlace& place, const std::string& path) {
  constexpr std::streamsize kMostBytes = 1 << 16;
  std::ifstream in(place.root + path, std::ios::binary);
  std::string text(kMostBytes, '\0');
  in.read(text.data(), kMostBytes);
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

std::string FirstLine(const ProbePlace& place, const std::string& path) {
  const std::string text = Text(place, path);
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> Names(const ProbePlace& place, const std::string& folder,
                               const std::string& prefix, const std::string& suffix) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(place.root + folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(suffix)) paths.push_back(folder + "/" + name);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string Variable(const ProbePlace& place, const char* name) {
  const char* text = place.variable(name);
  return text == nullptr ? "" : text;
}

int64_t DisplayControllers(const ProbePlace& place, const std::string& vendor) {
  constexpr char kDisplay[] = "0x03";  // of PCI's classes
  int64_t count = 0;
  for (const std::string& device : Names(place, "/sys/bus/pci/devices", "")) {
    const bool is_display = FirstLine(place, device + "/class").starts_with(kDisplay);
    if (is_display && FirstLine(place, device + "/vendor") == vendor) ++count;
  }
  return count;
}

}  // namespace probing

namespace {

using probing::Exists;
using probing::FirstLine;
using probing::Text;
using probing::Variable;

// The value of the first line "KEY : VALUE" or "KEY=VALUE", without quotes.
std::string ValueIn(const std::string& text, const std::string& key) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const size_t sign = line.find_first_of(":=");
    if (sign == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    const size_t start = line.find_first_not_of(" \t\"", sign + 1);
    if (start == std::string::npos) return "";
    return line.substr(start, line.find_last_not_of(" \t\"") + 1 - start);
  }
  return "";
}

std::string FindContainer(const ProbePlace& place) {
  if (!Variable(place, "KUBERNETES_SERVICE_HOST").empty()) return "kubernetes";
  if (Exists(place, "/.dockerenv")) return "docker";
  if (Exists(place, "/run/.containerenv")) return "podman";
  return Variable(place, "container").empty() ? "" : "container";
}

Probe::System FindSystem(const ProbePlace& place) {
  Probe::System system;
  const std::string release = Text(place, "/etc/os-release");
  system.name = ValueIn(release, "PRETTY_NAME=");
  system.distribution = ValueIn(release, "ID=");
  utsname names;
  if (uname(&names) == 0) system.machine = names.machine;
  system.kernel = FirstLine(place, "/proc/sys/kernel/osrelease");
  system.container = FindContainer(place);
  const std::string board = FirstLine(place, "/etc/nv_tegra_release");  // "# R36 (release), ..."
  const size_t start = board.find_first_not_of("# ");
  if (start != std::string::npos) system.jetson = board.substr(start, board.find(", GCID") - start);
  system.wsl = system.kernel.find("icrosoft") != std::string::npos;
  return system;
}

Probe::Cpu FindCpu(const ProbePlace& place) {
  static constexpr const char* kKnown[] = {"sse4_2",      "avx",      "avx2",        "fma",
                                           "f16c",        "avx512f",  "avx512_vnni", "avx512_bf16",
                                           "avx512_fp16", "avx_vnni", "amx_bf16",    "amx_int8"};
  Probe::Cpu cpu;
  const std::string info = Text(place, "/proc/cpuinfo");
  if (const std::string name = ValueIn(info, "model name"); !name.empty()) cpu.name = name;
  std::istringstream words(ValueIn(info, "flags"));
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  for (const char* known : kKnown) {
    if (flags.count(known) > 0) cpu.isa.emplace_back(known);
  }
  return cpu;
}

std::optional<int64_t> PositiveVariable(const ProbePlace& place, const char* name) {
  const int64_t value = std::atoll(Variable(place, name).c_str());
  return value > 0 ? std::optional(value) : std::nullopt;
}

// The limit that decides, in the order in which people can change it.
std::string ThreadReason(const Probe::Threads& threads) {
  const int64_t least = std::min({threads.affinity, threads.omp_num_threads.value_or(INT64_MAX),
                                  threads.omp_thread_limit.value_or(INT64_MAX)});
  if (threads.used < least) return "the container's CPU quota";
  if (least == threads.affinity)
    return threads.affinity < threads.online ? "the affinity mask" : "all cores";
  return least == threads.omp_num_threads ? "OMP_NUM_THREADS" : "OMP_THREAD_LIMIT";
}

Probe::Threads FindThreads(const ProbePlace& place) {
  Probe::Threads threads;
  threads.online = std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  threads.affinity = threads.online;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) threads.affinity = std::max(1, CPU_COUNT(&set));
  threads.omp_num_threads = PositiveVariable(place, "OMP_NUM_THREADS");
  threads.omp_thread_limit = PositiveVariable(place, "OMP_THREAD_LIMIT");
  threads.used = AvailableThreads();
  threads.because = ThreadReason(threads);
  for (const char* name :
       {"OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY", "GOMP_CPU_AFFINITY", "KMP_AFFINITY",
        "KMP_BLOCKTIME", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"}) {
    if (const std::string value = Variable(place, name); !value.empty())
      threads.settings.push_back(fmt::format("{}={}", name, value));
  }
  return threads;
}

Probe::Memory FindMemory(const ProbePlace& place) {
  const std::string info = Text(place, "/proc/meminfo");
  const auto bytes = [&](const std::string& key) {
    return int64_t{1024} * std::atoll(ValueIn(info, key).c_str());
  };
  Probe::Memory memory = {bytes("MemTotal:"), bytes("MemAvailable:"),
                          AvailableMemoryBytes(place.root), 0};
  struct statvfs shared;
  if (statvfs((place.root + "/dev/shm").c_str(), &shared) == 0)
    memory.shared_bytes = static_cast<int64_t>(shared.f_blocks * shared.f_frsize);
  return memory;
}

const char* IsaName(dnnl::cpu_isa isa) {
  switch (isa) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_fp16:
      return "avx512_core_fp16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    default:
      return "other";
  }
}

Probe::OneDnn FindOneDnn() {
  const dnnl_version_t* version = dnnl_version();
  return {fmt::format("{}.{}.{}", version->major, version->minor, version->patch),
          IsaName(dnnl::get_effective_cpu_isa())};
}

// A driver that does not answer is given up.
std::string OutputOf(const std::string& words) {
  std::string text;
  FILE* pipe = popen(("timeout 10 " + words + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return text;
  constexpr size_t kMostBytes = 1 << 16;
  char buffer[4096];
  for (size_t got = 1; got > 0 && text.size() < kMostBytes; text.append(buffer, got))
    got = std::fread(buffer, 1, sizeof(buffer), pipe);
  return pclose(pipe) == 0 ? text : "";
}

// Opens the plug-in, and the library with it; joins nothing.
Probe::Mpi LoadedPlugin(Mpi mpi) {
  Probe::Mpi found;
  found.id = MpiId(mpi);
  found.plugin = FindMpiPlugin(mpi);
  if (found.plugin.empty()) return found;
  const Result<const RidgeMpiApi*> api = LoadMpiPlugin(mpi);
  if (!api.ok()) {
    found.failure = api.status().message();
    return found;
  }
  char text[8192] = "";
  (*api)->library(text, sizeof(text));
  found.library = MpiLibraryName(text);
  return found;
}

}  // namespace

ProbePlace ThisMachine() {
  return {"",        [](const char* name) -> const char* { return std::getenv(name); },
          OutputOf,  LoadedPlugin,
          AskDriver, OpenNvrtc};
}

Probe FindProbe(const ProbePlace& place) {
  Probe probe;
  probe.ridge = kRidgeVersion;
  probe.system = FindSystem(place);
  probe.cpu = FindCpu(place);
  probe.threads = FindThreads(place);
  probe.memory = FindMemory(place);
  probe.onednn = FindOneDnn();
  probe.cuda = FindCuda(place);
  probe.rocm = FindRocm(place);
  probe.python = FindPython(place);
  return probe;
}

}  // namespace ridge

// `ridge doctor`: what was found on this machine, and why the defaults are what they are.
//
// Findings only: nothing is measured and nothing is changed.
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "oneapi/dnnl/dnnl.hpp"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/threads.h"
#include "ridge/core/units.h"
#include "ridge/core/version.h"
#include "ridge/report/table.h"
#include "ridge/runtime/profile_store.h"

namespace ridge::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFashionMnist[] = "/usr/share/datasets/fashion-mnist";

struct CpuFacts {
  std::string name = "unknown";
  std::vector<std::string> isa;  // of those that kernels care for
};

struct ThreadFacts {
  int online = 1;            // cores of the machine
  int affinity = 1;          // cores in the affinity mask
  int omp_num_threads = 0;   // 0: not set
  int omp_thread_limit = 0;  // 0: not set
  int threads = 1;           // what is used
  std::string because;
};

struct MemoryFacts {
  int64_t total_bytes = 0;
  int64_t available_bytes = 0;  // by the system
  int64_t usable_bytes = 0;     // and the container's limit
};

// The value of the first line "KEY : VALUE".
std::string ProcValue(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

CpuFacts FindCpu() {
  static constexpr const char* kKnown[] = {"sse4_2",      "avx",      "avx2",        "fma",
                                           "f16c",        "avx512f",  "avx512_vnni", "avx512_bf16",
                                           "avx512_fp16", "avx_vnni", "amx_bf16",    "amx_int8"};
  CpuFacts cpu;
  if (const std::string name = ProcValue("/proc/cpuinfo", "model name"); !name.empty())
    cpu.name = name;
  std::istringstream words(ProcValue("/proc/cpuinfo", "flags"));
  std::set<std::string> flags;
  for (std::string word; words >> word;) flags.insert(word);
  for (const char* known : kKnown) {
    if (flags.count(known) > 0) cpu.isa.emplace_back(known);
  }
  return cpu;
}

// The limit that decides, in the order in which people can change it.
std::string ThreadReason(const ThreadFacts& facts) {
  const auto below = [](int variable, int threads) { return variable > 0 && variable < threads; };
  int allowed = facts.affinity;
  if (below(facts.omp_num_threads, allowed)) allowed = facts.omp_num_threads;
  if (below(facts.omp_thread_limit, allowed)) allowed = facts.omp_thread_limit;
  if (facts.threads < allowed) return "the container's CPU quota";
  if (allowed == facts.omp_num_threads && allowed < facts.affinity) return "OMP_NUM_THREADS";
  if (allowed == facts.omp_thread_limit && allowed < facts.affinity) return "OMP_THREAD_LIMIT";
  return facts.affinity < facts.online ? "the affinity mask" : "all cores";
}

int VariableOrZero(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::max(0, std::atoi(text));
}

ThreadFacts FindThreads() {
  ThreadFacts facts;
  facts.online = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  facts.affinity = facts.online;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) facts.affinity = std::max(1, CPU_COUNT(&set));
  facts.omp_num_threads = VariableOrZero("OMP_NUM_THREADS");
  facts.omp_thread_limit = VariableOrZero("OMP_THREAD_LIMIT");
  facts.threads = AvailableThreads();
  facts.because = ThreadReason(facts);
  return facts;
}

MemoryFacts FindMemory() {
  const auto bytes = [](const std::string& key) {
    return int64_t{1024} * std::atoll(ProcValue("/proc/meminfo", key).c_str());
  };
  return {bytes("MemTotal"), bytes("MemAvailable"), AvailableMemoryBytes()};
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

std::string NvidiaDriver() {
  const Result<std::string> text = ReadFile("/proc/driver/nvidia/version", 1 << 16);
  return text.ok() ? text->substr(0, text->find('\n')) : "";
}

std::string DataFolder() {
  std::error_code error;
  return std::filesystem::is_directory(kFashionMnist, error) ? kFashionMnist : "";
}

// One file a device and thread count, in order of name.
std::vector<std::string> Profiles() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(ProfilePath("")).parent_path(), error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Json CpuJson() {
  const CpuFacts cpu = FindCpu();
  return {{"name", cpu.name}, {"isa", cpu.isa}};
}

Json ThreadsJson() {
  const ThreadFacts facts = FindThreads();
  Json json;
  json["used"] = facts.threads;
  json["because"] = facts.because;
  json["online"] = facts.online;
  json["affinity"] = facts.affinity;
  const auto set = [](int variable) { return variable > 0 ? Json(variable) : Json(nullptr); };
  json["omp_num_threads"] = set(facts.omp_num_threads);
  json["omp_thread_limit"] = set(facts.omp_thread_limit);
  return json;
}

Json MemoryJson() {
  const MemoryFacts facts = FindMemory();
  return {{"total_bytes", facts.total_bytes},
          {"available_bytes", facts.available_bytes},
          {"usable_bytes", facts.usable_bytes}};
}

Json OneDnnJson() {
  const dnnl_version_t* version = dnnl_version();
  return {{"version", fmt::format("{}.{}.{}", version->major, version->minor, version->patch)},
          {"isa", IsaName(dnnl::get_effective_cpu_isa())}};
}

Json TerminalJson(const Terminal& terminal) {
  return {{"is_terminal", terminal.is_terminal},
          {"colour", terminal.colour},
          {"unicode", terminal.unicode},
          {"width", terminal.width}};
}

Json Findings(const Terminal& terminal) {
  const std::string driver = NvidiaDriver(), data = DataFolder();
  Json json;
  json["ridge"] = kRidgeVersion;
  json["cpu"] = CpuJson();
  json["threads"] = ThreadsJson();
  json["memory"] = MemoryJson();
  json["onednn"] = OneDnnJson();
  json["cuda"] = {{"driver", driver.empty() ? Json(nullptr) : Json(driver)}, {"usable", false}};
  json["profiles"] = Profiles();
  json["cache_folder"] = CacheFolder();
  json["fashion_mnist"] = data.empty() ? Json(nullptr) : Json(data);
  json["terminal"] = TerminalJson(terminal);
  return json;
}

std::string Text(const Json& json) { return json.is_null() ? "" : json.get<std::string>(); }

std::string ThreadsText(const Json& threads) {
  std::string text = fmt::format("{} ({}); machine {}, affinity {}", threads["used"].get<int>(),
                                 Text(threads["because"]), threads["online"].get<int>(),
                                 threads["affinity"].get<int>());
  for (const auto& [key, name] : {std::pair("omp_num_threads", "OMP_NUM_THREADS"),
                                  {"omp_thread_limit", "OMP_THREAD_LIMIT"}}) {
    if (!threads[key].is_null()) text += fmt::format(", {} {}", name, threads[key].get<int>());
  }
  return text;
}

std::string MemoryText(const Json& memory) {
  const int64_t usable = memory["usable_bytes"], available = memory["available_bytes"];
  std::string text = fmt::format("{} usable", FormatBytes(usable));
  text += usable < available - (int64_t{64} << 20) ? " (the container's limit)" : "";
  return text + fmt::format("; machine {}, of it free {}",
                            FormatBytes(memory["total_bytes"].get<int64_t>()),
                            FormatBytes(available));
}

std::string TerminalText(const Json& terminal) {
  if (!terminal["is_terminal"].get<bool>()) return "standard output is not a terminal";
  return fmt::format("{} columns, {}, {}", terminal["width"].get<int>(),
                     terminal["colour"].get<bool>() ? "colour" : "no colour",
                     terminal["unicode"].get<bool>() ? "UTF-8" : "ASCII");
}

// With the reason for its next measurement.
std::string ProfileText(const std::string& name) {
  const Result<DeviceProfile> profile = LoadProfile(name);
  if (!profile.ok()) return name + " (damaged)";
  if (IsTrusted(*profile)) return name;
  return fmt::format("{} ({}: the next start measures again)", name, DistrustReason(*profile));
}

std::string ProfilesText(const Json& profiles) {
  std::string text;
  for (const Json& name : profiles) text += (text.empty() ? "" : ", ") + ProfileText(Text(name));
  return text.empty() ? "none; `ridge bench device` measures one" : text;
}

std::string JoinedWords(const Json& words) {
  std::string text;
  for (const Json& word : words) text += (text.empty() ? "" : " ") + Text(word);
  return text;
}

std::string CudaText(const Json& cuda) {
  if (cuda["driver"].is_null()) return "no driver";
  return Text(cuda["driver"]) + "; this version of ridge does not use it";
}

std::string DataText(const Json& folder) {
  return folder.is_null() ? "not found; apt-get install dataset-fashion-mnist" : Text(folder);
}

std::string Report(const Json& found, const Terminal& terminal) {
  Table table({{""}, {""}});
  table.AddRow({"ridge", Text(found["ridge"])});
  table.AddRow({"CPU", Text(found["cpu"]["name"])});
  table.AddRow({"", JoinedWords(found["cpu"]["isa"])});
  table.AddRow({"threads", ThreadsText(found["threads"])});
  table.AddRow({"memory", MemoryText(found["memory"])});
  table.AddRow({"oneDNN", Text(found["onednn"]["version"]) + ", " + Text(found["onednn"]["isa"])});
  table.AddRow({"CUDA", CudaText(found["cuda"])});
  table.AddRow({"device profile", ProfilesText(found["profiles"])});
  table.AddRow({"cache", Text(found["cache_folder"])});
  table.AddRow({"fashion-mnist", DataText(found["fashion_mnist"])});
  table.AddRow({"terminal", TerminalText(found["terminal"])});
  return table.ToText(terminal, /*indent=*/0);
}

struct DoctorOptions {
  bool json = false;
  std::optional<std::string> color;
};

}  // namespace

VerbBody AddDoctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  AddSwitch(app, "--json", options->json, "Print JSON");
  AddChoice(app, "--color", options->color, {"auto", "always", "never"}, "Colour of the output");
  return [options]() -> Result<int> {
    RIDGE_ASSIGN_OR_RETURN(const ColourChoice colour,
                           ParseColourChoice(options->color.value_or("auto")));
    const Terminal terminal = DetectTerminal(stdout, colour);
    const Json found = Findings(terminal);
    PrintData(options->json ? found.dump(1) + "\n" : Report(found, terminal));
    return kExitOk;
  };
}

}  // namespace ridge::cli

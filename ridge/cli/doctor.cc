// `ridge doctor`: what was found on this machine, what is wrong with it, and what mends that.
//
// Nothing is measured and nothing is changed.  What stands in doctor/ is a function of the probe;
// the rest, such as the terminal, is of this process.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "ridge/cli/doctor_report.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/files.h"
#include "ridge/core/units.h"
#include "ridge/doctor/dockerfile.h"
#include "ridge/doctor/find_probe.h"
#include "ridge/doctor/problems.h"
#include "ridge/report/table.h"
#include "ridge/runtime/profile_store.h"

namespace ridge::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFashionMnist[] = "/usr/share/datasets/fashion-mnist";

struct DoctorVerb {
  std::optional<std::string> probe, dockerfile, color;
  bool json = false;
};

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

Json TerminalJson(const Terminal& terminal) {
  return {{"is_terminal", terminal.is_terminal},
          {"colour", terminal.colour},
          {"unicode", terminal.unicode},
          {"width", terminal.width}};
}

// Of this process, not of the machine.
void AddHere(const Terminal& terminal, Json& json) {
  const std::string data = DataFolder();
  json["profiles"] = Profiles();
  json["cache_folder"] = CacheFolder();
  json["fashion_mnist"] = data.empty() ? Json(nullptr) : Json(data);
  json["terminal"] = TerminalJson(terminal);
}

std::string Joined(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

std::string SystemText(const Probe::System& system) {
  std::vector<std::string> parts = {system.name.empty() ? "unknown" : system.name, system.machine,
                                    "Linux " + system.kernel};
  if (!system.container.empty()) parts.push_back("in " + system.container);
  if (system.wsl) parts.emplace_back("WSL");
  if (!system.jetson.empty()) parts.push_back("Jetson " + system.jetson);
  return Joined(parts, ", ");
}

std::string ThreadsText(const Probe::Threads& threads) {
  std::string text = fmt::format("{} ({}); machine {}, affinity {}", threads.used, threads.because,
                                 threads.online, threads.affinity);
  if (threads.omp_num_threads)
    text += fmt::format(", OMP_NUM_THREADS {}", *threads.omp_num_threads);
  if (threads.omp_thread_limit)
    text += fmt::format(", OMP_THREAD_LIMIT {}", *threads.omp_thread_limit);
  for (const std::string& setting : threads.settings) text += ", " + setting;
  return text;
}

std::string MemoryText(const Probe::Memory& memory) {
  const bool limited = memory.usable_bytes < memory.available_bytes - (int64_t{64} << 20);
  return fmt::format("{} usable{}; machine {}, of it free {}", FormatBytes(memory.usable_bytes),
                     limited ? " (the container's limit)" : "", FormatBytes(memory.total_bytes),
                     FormatBytes(memory.available_bytes));
}

// "NVIDIA H100 (9.0, 80 GiB), MIG 1g.10gb"
std::string GpuText(const Probe::Gpu& gpu) {
  std::vector<std::string> parts = {
      fmt::format("{} ({}, {})", gpu.name, gpu.architecture, FormatBytes(gpu.memory_bytes))};
  if (gpu.mig) parts.emplace_back("MIG on");
  for (const std::string& instance : gpu.mig_instances) parts.push_back(instance);
  return Joined(parts, ", ");
}

// A row for equal GPUs.
std::vector<std::string> GpuRows(const std::vector<Probe::Gpu>& gpus) {
  std::vector<std::string> rows;
  for (size_t i = 0; i < gpus.size();) {
    const std::string text = GpuText(gpus[i]);
    size_t count = 0;
    while (i < gpus.size() && GpuText(gpus[i]) == text) ++count, ++i;
    rows.push_back(count == 1 ? text : fmt::format("{} x {}", count, text));
  }
  return rows;
}

std::string CudaText(const Probe::Cuda& cuda) {
  std::vector<std::string> parts;
  if (!cuda.driver.empty()) parts.push_back("driver " + cuda.driver);
  if (cuda.answer && !cuda.answer->library.empty())
    parts.push_back(fmt::format("CUDA {} ({})", cuda.answer->version, cuda.answer->library));
  if (parts.empty()) return "no driver";
  return Joined(parts, ", ");
}

// The GPUs that programs see, by ordinal.
void AddAnswerRows(const Probe::Cuda& cuda, Table& table) {
  if (!cuda.answer) return;
  if (cuda.visible_devices) {
    table.AddRow(
        {"", fmt::format("CUDA_VISIBLE_DEVICES is '{}' and leaves {}", *cuda.visible_devices,
                         FormatCountOf(std::ssize(cuda.answer->devices), "GPU"))});
  }
  int ordinal = 0;
  for (const Probe::CudaDevice& device : cuda.answer->devices) {
    table.AddRow(
        {"", fmt::format("cuda:{} {} ({}, {}), {}", ordinal++, device.name, device.architecture,
                         FormatBytes(device.memory_bytes), device.uuid)});
  }
}

std::string RocmText(const Probe::Rocm& rocm) {
  return rocm.version.empty() ? "not installed"
                              : rocm.version + "; this version of ridge does not use it";
}

void AddLibraryRows(const char* name, const std::vector<Probe::Library>& libraries, Table& table) {
  for (const Probe::Library& library : libraries)
    table.AddRow({name, fmt::format("{} ({})", library.version, library.path)});
}

void AddGpuRows(const Probe& probe, Table& table) {
  table.AddRow({"CUDA", CudaText(probe.cuda)});
  for (const std::string& row : GpuRows(probe.cuda.gpus)) table.AddRow({"", row});
  AddAnswerRows(probe.cuda, table);
  AddLibraryRows("CUDA toolkit", probe.cuda.toolkits, table);
  AddLibraryRows("NVRTC", probe.cuda.nvrtc, table);
  AddLibraryRows("cuBLASLt", probe.cuda.cublaslt, table);
  AddLibraryRows("cuDNN", probe.cuda.cudnn, table);
  AddLibraryRows("NCCL", probe.cuda.nccl, table);
  if (!HasAmd(probe) && probe.rocm.version.empty()) return;
  table.AddRow({"ROCm", RocmText(probe.rocm)});
  for (const std::string& row : GpuRows(probe.rocm.gpus)) table.AddRow({"", row});
}

void AddPythonRows(const Probe::Python& python, Table& table) {
  if (python.version.empty()) return;
  std::vector<std::string> packages;
  for (const Probe::Package& package : python.packages)
    packages.push_back(package.name + " " + package.version);
  table.AddRow({"Python", fmt::format("{} ({})", python.version, python.folder)});
  if (!packages.empty()) table.AddRow({"", Joined(packages, ", ")});
}

// With the reason for its next measurement.
std::string ProfileText(const std::string& name) {
  const Result<DeviceProfile> profile = LoadProfile(name);
  if (!profile.ok()) return name + " (damaged)";
  if (IsTrusted(*profile)) return name;
  return fmt::format("{} ({}: the next start measures again)", name, DistrustReason(*profile));
}

std::string ProfilesText() {
  std::vector<std::string> texts;
  for (const std::string& name : Profiles()) texts.push_back(ProfileText(name));
  return texts.empty() ? "none; `ridge bench device` measures one" : Joined(texts, ", ");
}

std::string TerminalText(const Terminal& terminal) {
  if (!terminal.is_terminal) return "standard output is not a terminal";
  return fmt::format("{} columns, {}, {}", terminal.width, terminal.colour ? "colour" : "no colour",
                     terminal.unicode ? "UTF-8" : "ASCII");
}

void AddHereRows(const Terminal& terminal, Table& table) {
  const std::string data = DataFolder();
  table.AddRow({"device profile", ProfilesText()});
  table.AddRow({"cache", CacheFolder()});
  table.AddRow(
      {"fashion-mnist", data.empty() ? "not found; apt-get install dataset-fashion-mnist" : data});
  table.AddRow({"terminal", TerminalText(terminal)});
}

std::string FoundText(const Probe& probe, bool is_here, const Terminal& terminal) {
  Table table({{""}, {""}});
  table.AddRow({"ridge", probe.ridge});
  table.AddRow({"system", SystemText(probe.system)});
  table.AddRow({"CPU", probe.cpu.name});
  table.AddRow({"", Joined(probe.cpu.isa, " ")});
  table.AddRow({"threads", ThreadsText(probe.threads)});
  table.AddRow({"memory", MemoryText(probe.memory)});
  table.AddRow({"oneDNN", probe.onednn.version + ", " + probe.onednn.isa});
  AddGpuRows(probe, table);
  AddPythonRows(probe.python, table);
  if (is_here) AddHereRows(terminal, table);
  return table.ToText(terminal, /*indent=*/0);
}

void PrintFindings(const DoctorVerb& verb, const Probe& probe, const std::vector<Problem>& problems,
                   const Terminal& terminal) {
  if (!verb.json) {
    PrintData(FoundText(probe, !verb.probe, terminal) + ProblemsText(problems));
    return;
  }
  Json json = ProbeToJson(probe);
  if (!verb.probe) AddHere(terminal, json);
  json["problems"] = ProblemsJson(problems);
  PrintData(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<int> RunDoctor(const DoctorVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const ColourChoice colour, ParseColourChoice(verb.color.value_or("auto")));
  const bool only_dockerfile = IsStandardOutput(verb.dockerfile);
  RIDGE_RETURN_IF_ERROR(
      OneOnStandardOutput({{"--json", verb.json}, {"--dockerfile", only_dockerfile}}));
  RIDGE_ASSIGN_OR_RETURN(const Probe probe, ProbeOf(verb.probe));
  const std::vector<Problem> problems = FindProblems(probe);
  if (verb.dockerfile) {
    RIDGE_ASSIGN_OR_RETURN(const std::string text, DockerfileFor(probe));
    RIDGE_RETURN_IF_ERROR(WriteFileAtomically(*verb.dockerfile, text));
  }
  if (!only_dockerfile) PrintFindings(verb, probe, problems, DetectTerminal(stdout, colour));
  return AnyBlocking(problems) ? kExitDevice : kExitOk;
}

}  // namespace

VerbBody AddDoctor(CLI::App& app) {
  auto verb = std::make_shared<DoctorVerb>();
  AddText(app, "--probe", verb->probe, "FILE",
          "Judges a machine that `ridge doctor --json` recorded, not this one");
  AddText(app, "--dockerfile", verb->dockerfile, "FILE",
          "Writes a Dockerfile whose versions agree with the driver and the GPUs; - is standard "
          "output");
  AddSwitch(app, "--json", verb->json, "Print JSON");
  AddChoice(app, "--color", verb->color, {"auto", "always", "never"}, "Colour of the output");
  return [verb] { return RunDoctor(*verb); };
}

}  // namespace ridge::cli

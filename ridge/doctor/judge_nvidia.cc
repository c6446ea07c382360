// NVIDIA's GPUs: is there a driver, does it match its library and the GPU, and can programs reach
// it.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/gpus.h"
#include "ridge/core/units.h"
#include "ridge/doctor/problems.h"

namespace ridge {
namespace {

constexpr char kDriver[] = "driver";

void JudgeDriver(Judgement& judgement) {
  const Probe& probe = judgement.probe;
  if (!probe.cuda.driver.empty() || probe.cuda.pci_gpus == 0) return;
  judgement.Add(Severity::kBlocking, kDriver,
                fmt::format("{} of NVIDIA, and no driver is loaded",
                            FormatCountOf(probe.cuda.pci_gpus, "GPU")),
                DriverMend(probe, ""));
}

// A container sees the driver of the kernel, and devices only when it was started with them.
void JudgeDeviceFiles(Judgement& judgement) {
  const Probe& probe = judgement.probe;
  if (probe.system.wsl) {
    if (!probe.cuda.device_files) {
      judgement.Add(Severity::kNote, "WSL", "/dev/dxg is missing: GPUs of Windows are not seen",
                    "in Windows: wsl --update && wsl --shutdown");
    }
    return;
  }
  if (probe.cuda.driver.empty() || probe.cuda.device_files) return;
  const bool contained = !probe.system.container.empty();
  judgement.Add(
      Severity::kBlocking, "devices",
      fmt::format("driver {} is loaded, and /dev/nvidiactl is missing{}", probe.cuda.driver,
                  contained ? ": the container was started without GPUs" : ""),
      contained ? "docker run --gpus all ..." : "sudo nvidia-modprobe -c 0 -u");
}

bool IsOfDriver(const Probe::Library& library) {
  constexpr int kFirstBranch = 100;  // WSL and Jetson name their library 1.1
  return Version(library.version).at(0) >= kFirstBranch;
}

// The library of the driver and the kernel's module are one version.
void JudgeLibrary(Judgement& judgement) {
  const Probe& probe = judgement.probe;
  if (probe.cuda.driver.empty() || probe.system.wsl || !probe.cuda.device_files) return;
  const bool contained = !probe.system.container.empty();
  const bool answers = probe.cuda.answer && !probe.cuda.answer->library.empty();
  if (probe.cuda.libraries.empty() && answers) return;  // the loader found it elsewhere
  if (probe.cuda.libraries.empty()) {
    judgement.Add(Severity::kBlocking, kDriver,
                  fmt::format("libcuda.so of driver {} is not found", probe.cuda.driver),
                  contained
                      ? "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ..."
                      : DriverMend(probe, probe.cuda.driver));
    return;
  }
  const Probe::Library& library = probe.cuda.libraries.front();
  if (!IsOfDriver(library) || Version(library.version) == Version(probe.cuda.driver)) return;
  judgement.Add(Severity::kBlocking, kDriver,
                fmt::format("the kernel has driver {}, {} is of {}: an update waits for a restart",
                            probe.cuda.driver, library.path, library.version),
                contained ? "start the container again" : "sudo reboot");
}

// A driver for Linux shadows that of Windows.
void JudgeWsl(Judgement& judgement) {
  const Probe& probe = judgement.probe;
  if (!probe.system.wsl) return;
  for (const Probe::Library& library : probe.cuda.libraries) {
    if (library.path.starts_with("/usr/lib/wsl/")) continue;
    judgement.Add(Severity::kBlocking, "WSL",
                  fmt::format("{} is of a driver for Linux; WSL has that of Windows, in "
                              "/usr/lib/wsl/lib",
                              library.path),
                  "sudo apt-get purge 'nvidia-driver-*' 'libnvidia-compute-*'");
    return;
  }
}

// "last driver branch R470" -> 470; 0 without one.
int LastBranch(const CompatRow& row) {
  const size_t at = row.notes.find("branch R");
  return at == std::string::npos ? 0 : Version(row.notes.substr(at + 8)).at(0);
}

const CompatRow* DriverRowOf(const std::string& architecture) {
  for (const CompatRow& row : CompatRows()) {
    if (row.table != "driver_arch") continue;
    if (std::find(row.architectures.begin(), row.architectures.end(), architecture) !=
        row.architectures.end())
      return &row;
  }
  return nullptr;
}

void JudgeArchitecture(const Probe::Gpu& gpu, Judgement& judgement) {
  const CompatRow* row = DriverRowOf(gpu.architecture);
  const std::string& driver = judgement.probe.cuda.driver;
  if (row == nullptr || driver.empty()) return;
  if (!row->driver.empty() && Version(driver) < Version(row->driver)) {
    judgement.Add(Severity::kBlocking, kDriver,
                  fmt::format("{} (architecture {}) needs driver {} or newer; the driver is {}",
                              gpu.name, gpu.architecture, row->driver, driver),
                  DriverMend(judgement.probe, row->driver), row);
  }
  const int last = LastBranch(*row);
  if (last > 0 && Version(driver).at(0) > last) {
    judgement.Add(Severity::kBlocking, kDriver,
                  fmt::format("{} (architecture {}) has its last driver in branch {}; the driver "
                              "is {}",
                              gpu.name, gpu.architecture, last, driver),
                  fmt::format("sudo apt-get install nvidia-driver-{} && sudo reboot", last), row);
  }
}

// The longest name that is in the GPU's: H200 is not H20.
const CompatRow* MigRowOf(const Probe::Gpu& gpu) {
  const CompatRow* best = nullptr;
  for (const CompatRow& row : CompatRows()) {
    if (row.table != "mig_min_driver" || gpu.name.find(row.key) == std::string::npos) continue;
    if (best == nullptr || row.key.size() > best->key.size()) best = &row;
  }
  return best;
}

void JudgeMig(size_t number, const Probe::Gpu& gpu, Judgement& judgement) {
  if (!gpu.mig) return;
  const std::string& driver = judgement.probe.cuda.driver;
  const CompatRow* row = MigRowOf(gpu);
  if (row != nullptr && !driver.empty() && Version(driver) < Version(row->driver)) {
    judgement.Add(Severity::kBlocking, "MIG",
                  fmt::format("that of {} needs driver {} or newer; the driver is {}", gpu.name,
                              row->driver, driver),
                  DriverMend(judgement.probe, row->driver), row);
  }
  if (gpu.mig_instances.empty()) {
    judgement.Add(Severity::kBlocking, "MIG",
                  fmt::format("it is on, and GPU {} ({}) has no instance: no program can use it",
                              number, gpu.name),
                  fmt::format("sudo nvidia-smi mig -i {} -cgi 0 -C", number));
    return;
  }
  judgement.Add(
      Severity::kNote, "MIG",
      fmt::format("GPU {} ({}) is cut into {}: a process uses one, and NCCL connects "
                  "none of them",
                  number, gpu.name,
                  FormatCountOf(static_cast<int64_t>(gpu.mig_instances.size()), "instance")),
      "nvidia-smi -L, then: export CUDA_VISIBLE_DEVICES=MIG-...");
}

// Why libcuda shows no GPU.  A machine that has no files of one may have the library all the same.
void JudgeAnswer(Judgement& judgement) {
  const Probe::Cuda& cuda = judgement.probe.cuda;
  if (!cuda.answer || cuda.answer->failure.empty()) return;
  const bool works = !cuda.answer->library.empty() && cuda.device_files;
  const auto [text, hint] = SplitHint(cuda.answer->failure);
  judgement.Add(!works                 ? Severity::kNote
                : cuda.visible_devices ? Severity::kWarning
                                       : Severity::kBlocking,
                "libcuda", text, hint);
}

// Of no weight without a GPU that works.
void JudgeNvrtc(Judgement& judgement) {
  const Probe::Cuda& cuda = judgement.probe.cuda;
  if (cuda.nvrtc_failure.empty() || !cuda.answer || cuda.answer->devices.empty()) return;
  const auto [text, hint] = SplitHint(cuda.nvrtc_failure);
  judgement.Add(Severity::kNote, "--device cuda", text, hint);
}

// The list as the backend reads it, against the GPUs that the driver shows.
Status CheckVisible(const Probe::Cuda& cuda) {
  RIDGE_ASSIGN_OR_RETURN(const cuda::VisibleDevices visible,
                         cuda::ParseVisibleDevices(cuda.visible_devices));
  if (!cuda.answer) return Status();
  return cuda::CheckShown(visible, static_cast<int64_t>(cuda.answer->devices.size()));
}

void JudgeVisibleDevices(Judgement& judgement) {
  constexpr char kName[] = "CUDA_VISIBLE_DEVICES";
  const std::optional<std::string>& devices = judgement.probe.cuda.visible_devices;
  const bool failed = judgement.probe.cuda.answer && !judgement.probe.cuda.answer->failure.empty();
  if (!devices || failed) return;
  if (devices->empty() || devices->starts_with("-")) {
    judgement.Add(Severity::kWarning, kName,
                  fmt::format("it is '{}': programs see no GPU", *devices),
                  "unset CUDA_VISIBLE_DEVICES");
    return;
  }
  const Status status = CheckVisible(judgement.probe.cuda);
  if (status.ok()) return;
  const auto [text, hint] = SplitHint(status.message());
  judgement.Add(Severity::kWarning, kName, "it" + text.substr(sizeof(kName) - 1), hint);
}

// The compiler of a toolkit knows the GPUs of its day.
void JudgeToolkits(Judgement& judgement) {
  const Probe::Cuda& cuda = judgement.probe.cuda;
  for (const Probe::Library& toolkit : cuda.toolkits) {
    if (!DriverTakes(cuda.driver, toolkit.version)) {
      const CompatRow* row = DriverFor(toolkit.version);
      judgement.Add(Severity::kWarning, "CUDA",
                    fmt::format("CUDA {} in {} needs driver {} or newer; the driver is {}",
                                toolkit.version, toolkit.path, row->driver, cuda.driver),
                    DriverMend(judgement.probe, row->driver), row);
    }
    const CompatRow* built = FindCompat("cuda_arch", toolkit.version);
    for (const Probe::Gpu& gpu : cuda.gpus) {
      if (built == nullptr || gpu.architecture.empty()) continue;
      if (RunsOn(built->architectures, gpu.architecture)) continue;
      judgement.Add(Severity::kWarning, "CUDA",
                    fmt::format("nvcc of CUDA {} in {} does not compile for {} (architecture {})",
                                toolkit.version, toolkit.path, gpu.name, gpu.architecture),
                    "install a CUDA toolkit that has the architecture", built);
      break;
    }
  }
}

// Each version once, with where it was found first.
std::vector<Probe::Library> Versions(const std::vector<Probe::Library>& libraries) {
  std::vector<Probe::Library> versions;
  for (const Probe::Library& library : libraries) {
    const bool known =
        std::any_of(versions.begin(), versions.end(),
                    [&](const Probe::Library& other) { return other.version == library.version; });
    if (!known) versions.push_back(library);
  }
  return versions;
}

// The one that no framework asks for; without one, the last.
const Probe::Library& Unwanted(const std::vector<Probe::Library>& versions,
                               const std::vector<Framework>& frameworks) {
  const auto is_wanted = [&](const Probe::Library& library) {
    return std::any_of(frameworks.begin(), frameworks.end(), [&](const Framework& framework) {
      return !framework.cudnn.empty() && ServesCudnn(library.version, framework.cudnn);
    });
  };
  const auto found = std::find_if_not(versions.begin(), versions.end(), is_wanted);
  return found == versions.end() ? versions.back() : *found;
}

// `package` is Debian's, without what follows in its name.
void JudgeCopies(const char* name, const std::vector<Probe::Library>& libraries,
                 const std::string& package, Judgement& judgement) {
  const std::vector<Probe::Library> versions = Versions(libraries);
  if (versions.size() < 2) return;
  std::string list;
  for (const Probe::Library& library : versions)
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", library.version, library.path);
  const std::string& path = Unwanted(versions, judgement.frameworks).path;
  judgement.Add(
      Severity::kWarning, name,
      fmt::format("{} versions are found: {}; programs load the first", versions.size(), list),
      path.starts_with("/usr/lib/") ? fmt::format("sudo apt-get purge '{}*'", package)
                                    : fmt::format("take {} out of LD_LIBRARY_PATH, or remove it",
                                                  path.substr(0, path.rfind('/'))));
}

}  // namespace

void JudgeNvidia(Judgement& judgement) {
  JudgeDriver(judgement);
  JudgeDeviceFiles(judgement);
  JudgeLibrary(judgement);
  JudgeWsl(judgement);
  JudgeAnswer(judgement);
  JudgeNvrtc(judgement);
  const Probe::Cuda& cuda = judgement.probe.cuda;
  std::vector<std::string> seen;  // architectures: eight GPUs are one problem
  for (size_t i = 0; i < cuda.gpus.size(); ++i) {
    const Probe::Gpu& gpu = cuda.gpus[i];
    if (std::find(seen.begin(), seen.end(), gpu.architecture) == seen.end())
      JudgeArchitecture(gpu, judgement);
    seen.push_back(gpu.architecture);
    JudgeMig(i, gpu, judgement);
  }
  if (HasNvidia(judgement.probe)) JudgeVisibleDevices(judgement);
  JudgeToolkits(judgement);
  JudgeCopies("cuDNN", cuda.cudnn, "libcudnn", judgement);
  JudgeCopies("NCCL", cuda.nccl, "libnccl", judgement);
}

}  // namespace ridge

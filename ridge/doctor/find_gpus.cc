// GPUs: the bus says that they are there, the driver's files say which driver, nvidia-smi and the
// kernel's topology of AMD say what they are; libraries are files with their version in the name.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "ridge/backend/cuda/driver.h"
#include "ridge/core/split.h"
#include "ridge/doctor/compat.h"
#include "ridge/doctor/find_probe.h"

namespace ridge {
namespace {

using probing::Exists;
using probing::FirstLine;
using probing::Names;
using probing::Text;
using probing::Variable;

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue ...": the first word of numbers
// with a dot.
std::string DriverVersion(const std::string& line) {
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (Version(word).numbers.size() >= 2) return word;
  }
  return "";
}

// Folders in the order in which the loader looks: LD_LIBRARY_PATH first.
std::vector<std::string> LibraryFolders(const ProbePlace& place) {
  std::vector<std::string> folders;
  const auto add = [&](std::string folder) {
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    if (!folder.starts_with('/')) return;
    if (std::find(folders.begin(), folders.end(), folder) == folders.end())
      folders.push_back(std::move(folder));
  };
  const std::string search_path = Variable(place, "LD_LIBRARY_PATH");
  for (const std::string_view folder : SplitAt(search_path, ':')) add(std::string(folder));
  if (const std::string conda = Variable(place, "CONDA_PREFIX"); !conda.empty())
    add(conda + "/lib");
  for (const char* folder :
       {"/usr/lib/wsl/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
        "/usr/lib", "/usr/local/lib", "/usr/local/cuda/lib64"})
    add(folder);
  for (const std::string& toolkit : Names(place, "/usr/local", "cuda-")) add(toolkit + "/lib64");
  return folders;
}

// Links to one file are one library.
void AddLibrary(const ProbePlace& place, const std::string& path, const std::string& version,
                std::vector<std::string>& files, std::vector<Probe::Library>& found) {
  std::error_code error;
  const std::string file = std::filesystem::canonical(place.root + path, error).string();
  if (error || std::find(files.begin(), files.end(), file) != files.end()) return;
  files.push_back(file);
  found.push_back({version, path});
}

// Files "NAME.so.1.2.3" of these folders.
std::vector<Probe::Library> FindLibraries(const ProbePlace& place,
                                          const std::vector<std::string>& folders,
                                          const std::string& name) {
  std::vector<std::string> files;
  std::vector<Probe::Library> found;
  for (const std::string& folder : folders) {
    for (const std::string& path : Names(place, folder, name + ".so.")) {
      const std::string version = path.substr(folder.size() + name.size() + 5);
      if (Version(version).numbers.size() >= 2) AddLibrary(place, path, version, files, found);
    }
  }
  return found;
}

std::vector<Probe::Library> FindToolkits(const ProbePlace& place) {
  std::vector<std::string> folders;
  std::vector<Probe::Library> found;
  for (const std::string& folder : Names(place, "/usr/local", "cuda")) {
    const nlohmann::json json =
        nlohmann::json::parse(Text(place, folder + "/version.json"), nullptr, false);
    const nlohmann::json::json_pointer at("/cuda/version");
    if (json.is_discarded() || !json.contains(at) || !json[at].is_string()) continue;
    AddLibrary(place, folder, json[at].get<std::string>(), folders, found);
  }
  return found;
}

// Lines "NAME, 8.0, 40960, Enabled" of nvidia-smi's query.
std::vector<Probe::Gpu> GpusOf(const std::string& query) {
  std::vector<Probe::Gpu> gpus;
  for (const std::string_view line : SplitAt(query, '\n')) {
    const std::vector<std::string_view> cells = SplitAt(line, ',');
    if (cells.size() != 4) continue;
    const int64_t mib = std::atoll(std::string(Trimmed(cells[2])).c_str());
    gpus.push_back({std::string(Trimmed(cells[0])),
                    std::string(Trimmed(cells[1])),
                    std::max<int64_t>(mib, 0) << 20,
                    Trimmed(cells[3]) == "Enabled",
                    {}});
  }
  return gpus;
}

// Lines "GPU 0: NAME (UUID: ...)", each followed by "  MIG 1g.10gb  Device 0: (UUID: ...)".
void AddMigInstances(const std::string& list, std::vector<Probe::Gpu>& gpus) {
  size_t gpu = 0;
  for (const std::string_view line : SplitAt(list, '\n')) {
    const std::string text(Trimmed(line));
    if (text.starts_with("GPU ")) ++gpu;
    if (!text.starts_with("MIG ") || gpu == 0 || gpu > gpus.size()) continue;
    gpus[gpu - 1].mig_instances.emplace_back(
        Trimmed(std::string_view(text).substr(0, text.find("Device"))));
  }
}

std::vector<Probe::Gpu> FindNvidiaGpus(const ProbePlace& place) {
  std::vector<Probe::Gpu> gpus =
      GpusOf(place.command("nvidia-smi --query-gpu=name,compute_cap,memory.total,mig.mode.current "
                           "--format=csv,noheader,nounits"));
  if (std::any_of(gpus.begin(), gpus.end(), [](const Probe::Gpu& gpu) { return gpu.mig; }))
    AddMigInstances(place.command("nvidia-smi -L"), gpus);
  return gpus;
}

std::string DriverOfSmi(const ProbePlace& place) {
  const std::string text =
      place.command("nvidia-smi --query-gpu=driver_version --format=csv,noheader");
  return std::string(Trimmed(std::string_view(text).substr(0, text.find('\n'))));
}

// The number of the kernel's topology: 90010 is gfx90a, 110000 is gfx1100.
std::string GfxName(int64_t number) {
  return fmt::format("gfx{}{:x}{:x}", number / 10000, number / 100 % 100, number % 100);
}

// The value of the line "KEY VALUE"; 0 without one.
int64_t PropertyIn(const std::string& text, const std::string& key) {
  std::istringstream words(text);
  for (std::string word, value; words >> word >> value;) {
    if (word == key) return std::atoll(value.c_str());
  }
  return 0;
}

std::vector<Probe::Gpu> FindAmdGpus(const ProbePlace& place) {
  std::vector<Probe::Gpu> gpus;
  for (const std::string& node : Names(place, "/sys/class/kfd/kfd/topology/nodes", "")) {
    const int64_t number = PropertyIn(Text(place, node + "/properties"), "gfx_target_version");
    if (number <= 0) continue;  // a CPU
    const int64_t bytes =
        PropertyIn(Text(place, node + "/mem_banks/0/properties"), "size_in_bytes");
    gpus.push_back({FirstLine(place, node + "/name"), GfxName(number), bytes, false, {}});
  }
  return gpus;
}

// Whether it is worth asking: a machine without NVIDIA opens nothing.
bool MayHaveDriver(const ProbePlace& place, const Probe::Cuda& cuda) {
  return !cuda.driver.empty() || !cuda.libraries.empty() || cuda.device_files ||
         !Variable(place, cuda::kPathVariable).empty();
}

void AskLibraries(const ProbePlace& place, Probe::Cuda& cuda) {
  if (!MayHaveDriver(place, cuda)) return;
  if (place.driver != nullptr) cuda.answer = place.driver();
  if (place.nvrtc == nullptr) return;
  Result<Probe::Library> nvrtc = place.nvrtc();
  if (!nvrtc.ok()) cuda.nvrtc_failure = nvrtc.status().message();
  if (nvrtc.ok()) cuda.nvrtc = {*std::move(nvrtc)};
}

}  // namespace

Probe::Cuda FindCuda(const ProbePlace& place) {
  Probe::Cuda cuda;
  const std::vector<std::string> folders = LibraryFolders(place);
  cuda.driver = DriverVersion(FirstLine(place, "/proc/driver/nvidia/version"));
  cuda.pci_gpus = probing::DisplayControllers(place, "0x10de");
  for (const char* file : {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-gpu"})
    cuda.device_files |= Exists(place, file);
  cuda.libraries = FindLibraries(place, folders, "libcuda");
  cuda.library_path = Variable(place, "LD_LIBRARY_PATH");
  if (const char* devices = place.variable("CUDA_VISIBLE_DEVICES")) cuda.visible_devices = devices;
  if (cuda.device_files && (!cuda.driver.empty() || !cuda.libraries.empty())) {
    cuda.gpus = FindNvidiaGpus(place);
    if (cuda.driver.empty()) cuda.driver = DriverOfSmi(place);  // WSL: Windows has the driver
  }
  AskLibraries(place, cuda);
  cuda.toolkits = FindToolkits(place);
  cuda.cublaslt = FindLibraries(place, folders, "libcublasLt");
  cuda.cudnn = FindLibraries(place, folders, "libcudnn");
  cuda.nccl = FindLibraries(place, folders, "libnccl");
  return cuda;
}

Probe::Rocm FindRocm(const ProbePlace& place) {
  Probe::Rocm rocm;
  rocm.version = FirstLine(place, "/opt/rocm/.info/version");
  rocm.pci_gpus = probing::DisplayControllers(place, "0x1002");
  rocm.device_file = Exists(place, "/dev/kfd");
  rocm.device_access =
      rocm.device_file && access((place.root + "/dev/kfd").c_str(), R_OK | W_OK) == 0;
  rocm.gfx_override = Variable(place, "HSA_OVERRIDE_GFX_VERSION");
  rocm.gpus = FindAmdGpus(place);
  return rocm;
}

}  // namespace ridge

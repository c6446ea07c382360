#include "ridge/doctor/frameworks.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "ridge/core/split.h"

namespace ridge {
namespace {

Framework Named(FrameworkKind kind, const Probe::Package& package) {
  Framework framework;
  framework.kind = kind;
  framework.package = package.name;
  framework.version = package.version;
  return framework;
}

void TakeRow(const CompatRow* row, Framework& framework) {
  framework.row = row;
  if (row == nullptr) return;
  framework.cudnn = row->cudnn;
  framework.python = row->python;
}

void AddPyTorch(const Probe& probe, std::vector<Framework>& to) {
  const Probe::Package* package = FindPackage(probe, "torch");
  if (package == nullptr) return;
  Framework framework = Named(FrameworkKind::kPyTorch, *package);
  framework.cuda = package->cuda;
  framework.rocm = package->rocm;
  framework.brings_libraries = true;
  TakeRow(FindCompat("pytorch", package->version, package->cuda), framework);
  to.push_back(std::move(framework));
}

void AddTensorFlow(const Probe& probe, std::vector<Framework>& to) {
  for (const char* name : {"tensorflow", "tensorflow-cpu", "tensorflow-rocm", "intel-tensorflow"}) {
    const Probe::Package* package = FindPackage(probe, name);
    if (package == nullptr) continue;
    Framework framework = Named(FrameworkKind::kTensorFlow, *package);
    TakeRow(FindCompat("tensorflow_gpu", package->version), framework);
    if (package->name == "tensorflow" && framework.row != nullptr)
      framework.cuda = framework.row->cuda;
    if (package->name == "tensorflow-rocm") framework.rocm = probe.rocm.version;
    to.push_back(std::move(framework));
    return;
  }
}

// The GPU part is a package of its own, named for the major release: "jax-cuda12-plugin".
void AddJax(const Probe& probe, std::vector<Framework>& to) {
  const Probe::Package* package = FindPackage(probe, "jax");
  if (package == nullptr) return;
  Framework framework = Named(FrameworkKind::kJax, *package);
  for (const Probe::Package& other : probe.python.packages) {
    const std::string_view name = other.name;
    if (name.starts_with("jax-cuda") && name.ends_with("-plugin"))
      framework.cuda = Version(name.substr(8)).Text(1);
    if (name.starts_with("jax-rocm") && name.ends_with("-plugin")) framework.rocm = "6";
  }
  to.push_back(std::move(framework));
}

// A release is as the newest row that is no newer.
const CompatRow* OnnxRuntimeRow(const std::string& version) {
  const CompatRow* newest = nullptr;
  for (const CompatRow& row : CompatRows()) {
    if (row.table != "onnxruntime_gpu" || Version(version) < Version(row.key)) continue;
    if (newest == nullptr || Version(newest->key) < Version(row.key)) newest = &row;
  }
  return newest;
}

void AddOnnxRuntime(const Probe& probe, std::vector<Framework>& to) {
  for (const char* name : {"onnxruntime", "onnxruntime-gpu"}) {
    const Probe::Package* package = FindPackage(probe, name);
    if (package == nullptr) continue;
    Framework framework = Named(FrameworkKind::kOnnxRuntime, *package);
    if (package->name == "onnxruntime-gpu") {
      TakeRow(OnnxRuntimeRow(package->version), framework);
      if (framework.row != nullptr) framework.cuda = framework.row->cuda;
    }
    to.push_back(std::move(framework));
  }
}

bool IsRelease(const std::string& version, const std::string& release) {
  return Version(version).Text(2) == Version(release).Text(2);
}

// The driver takes the wheel, and it has code for each GPU.
bool Runs(const std::string& version, const std::string& cuda, const Probe& probe) {
  if (!DriverTakes(probe.cuda.driver, cuda)) return false;
  const CompatRow* row = TorchWheelCode(version, cuda, probe);
  return std::all_of(probe.cuda.gpus.begin(), probe.cuda.gpus.end(), [&](const Probe::Gpu& gpu) {
    return row == nullptr || gpu.architecture.empty() ||
           RunsOn(row->architectures, gpu.architecture);
  });
}

// Its own list of architectures is known, not only its compiler's.
bool IsKnownWheel(const std::string& version, const std::string& cuda, const Probe& probe) {
  const CompatRow* row = TorchWheelCode(version, cuda, probe);
  return row != nullptr && row->table != "cuda_arch";
}

}  // namespace

std::string Framework::Release() const { return version.substr(0, version.find('+')); }

std::vector<Framework> FrameworksOf(const Probe& probe) {
  std::vector<Framework> frameworks;
  AddPyTorch(probe, frameworks);
  AddTensorFlow(probe, frameworks);
  AddJax(probe, frameworks);
  AddOnnxRuntime(probe, frameworks);
  return frameworks;
}

const Probe::Package* FindPackage(const Probe& probe, const std::string& name) {
  for (const Probe::Package& package : probe.python.packages) {
    if (package.name == name) return &package;
  }
  return nullptr;
}

std::string TorchCommand(const std::string& requirement, const std::string& build) {
  return fmt::format("pip install '{}' --index-url https://download.pytorch.org/whl/{}",
                     requirement, build);
}

std::string CudaBuild(const std::string& cuda) {
  const Version version(cuda);
  return fmt::format("cu{}{}", version.at(0), version.at(1));
}

std::string RocmBuild(const std::string& rocm) { return "rocm" + Version(rocm).Text(2); }

const CompatRow* TorchWheelCode(const std::string& version, const std::string& cuda,
                                const Probe& probe) {
  const bool is_arm = probe.system.machine == "aarch64";
  for (const CompatRow& row : CompatRows()) {
    if (row.table != "pytorch_wheel_arch" || row.key.ends_with("-aarch64") != is_arm) continue;
    if (IsRelease(row.key, version) && IsRelease(row.cuda, cuda)) return &row;
  }
  return FindCompat("cuda_arch", cuda);  // no wheel has more than its compiler
}

std::optional<TorchWheel> TorchWheelFor(const Framework& framework, const Probe& probe) {
  const std::string release = Version(framework.version).Text(2);
  std::optional<TorchWheel> best;
  std::tuple<bool, bool, Version, Version> best_rank;
  for (const CompatRow& row : CompatRows()) {
    if (row.table != "pytorch_wheel_cuda") continue;
    const bool same = IsRelease(row.key, release);
    const Version key(row.key);
    for (const std::string& cuda : row.cudas) {
      if (!Runs(row.key, cuda, probe)) continue;
      const std::tuple rank(same, IsKnownWheel(row.key, cuda, probe), key, Version(cuda));
      if (best && rank <= best_rank) continue;
      best = {same ? "torch==" + framework.Release() : fmt::format("torch=={}.*", row.key), cuda,
              same};
      best_rank = rank;
    }
  }
  return best;
}

std::vector<std::string> TensorFlowsFor(const std::string& rocm, const CompatRow*& row) {
  for (const CompatRow& candidate : CompatRows()) {
    if (candidate.table != "rocm_framework") continue;
    if (Version(candidate.key).Text(3) != Version(rocm).Text(3)) continue;
    row = &candidate;
    return VersionsIn(candidate.notes, "TensorFlow");
  }
  return {};
}

std::vector<std::string> VersionsIn(const std::string& notes, const std::string& name) {
  std::vector<std::string> versions;
  const size_t at = notes.find(name + " ");
  if (at == std::string::npos) return versions;
  const size_t begin = at + name.size() + 1;
  const std::string list = notes.substr(begin, notes.find(';', begin) - begin);
  for (std::string_view version : SplitAt(list, ',')) {
    while (version.starts_with(' ')) version.remove_prefix(1);
    versions.emplace_back(version);
  }
  return versions;
}

bool ServesCudnn(const std::string& cudnn, const std::string& wanted) {
  const Version is(cudnn), least(wanted);
  return is.at(0) == least.at(0) && is.at(1) >= least.at(1);
}

bool DriverTakes(const std::string& driver, const std::string& cuda) {
  const CompatRow* row = DriverFor(cuda);
  return driver.empty() || row == nullptr || Version(driver) >= Version(row->driver);
}

}  // namespace ridge

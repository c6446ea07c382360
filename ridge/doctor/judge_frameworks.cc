// Frameworks: what each was built with against the driver, the GPU, the libraries and Python.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/split.h"
#include "ridge/doctor/problems.h"

namespace ridge {
namespace {

// TensorFlow brings CUDA as an extra since this release.
constexpr char kFirstWithExtra[] = "2.14";

// The command that installs the framework so that it uses this machine's GPU.
std::string GpuCommand(const Framework& framework, const Probe& probe) {
  switch (framework.kind) {
    case FrameworkKind::kPyTorch: {
      const std::optional<TorchWheel> wheel = TorchWheelFor(framework, probe);
      if (!wheel) return DriverMend(probe, "");
      return TorchCommand(wheel->requirement, CudaBuild(wheel->cuda));
    }
    case FrameworkKind::kTensorFlow:
      if (Version(framework.version) >= Version(kFirstWithExtra) || framework.row == nullptr)
        return fmt::format("pip install 'tensorflow[and-cuda]=={}'", framework.Release());
      return fmt::format("conda install -c conda-forge cudatoolkit={} cudnn={}",
                         framework.row->cuda, framework.row->cudnn);
    case FrameworkKind::kJax:
      return fmt::format("pip install 'jax[cuda{}]=={}'",
                         framework.cuda.empty() ? "12" : framework.cuda, framework.Release());
    case FrameworkKind::kOnnxRuntime:
      return fmt::format("pip install onnxruntime-gpu=={}", framework.Release());
  }
  return "";
}

void JudgeDriverOf(const Framework& framework, Judgement& judgement) {
  const Probe& probe = judgement.probe;
  if (DriverTakes(probe.cuda.driver, framework.cuda)) return;
  const CompatRow* row = DriverFor(framework.cuda);
  const std::optional<TorchWheel> wheel =
      framework.kind == FrameworkKind::kPyTorch ? TorchWheelFor(framework, probe) : std::nullopt;
  judgement.Add(
      Severity::kBlocking, framework.Title(),
      fmt::format("it is built with CUDA {}, which needs driver {} or newer; the driver is {}",
                  framework.cuda, row->driver, probe.cuda.driver),
      wheel && wheel->same_release ? GpuCommand(framework, probe) : DriverMend(probe, row->driver),
      row);
}

void JudgeWheel(const Framework& framework, Judgement& judgement) {
  const Probe& probe = judgement.probe;
  if (framework.kind != FrameworkKind::kPyTorch || !probe.system.jetson.empty()) return;
  const CompatRow* row = TorchWheelCode(framework.version, framework.cuda, probe);
  if (row == nullptr) return;
  for (const Probe::Gpu& gpu : probe.cuda.gpus) {
    if (gpu.architecture.empty() || RunsOn(row->architectures, gpu.architecture)) continue;
    judgement.Add(Severity::kBlocking, framework.Title(),
                  fmt::format("it has no code for {} (architecture {}); it has {}", gpu.name,
                              gpu.architecture, fmt::join(row->architectures, ", ")),
                  GpuCommand(framework, probe), row);
    return;
  }
}

// PyPI's wheels for this machine are for servers; a board needs its maker's.
void JudgeJetson(const Framework& framework, Judgement& judgement) {
  const Probe& probe = judgement.probe;
  if (framework.kind != FrameworkKind::kPyTorch || probe.system.jetson.empty()) return;
  if (framework.version.find("nv") != std::string::npos) return;
  judgement.Add(Severity::kBlocking, framework.Title(),
                fmt::format("it is built for servers; a Jetson ({}) needs NVIDIA's build for its "
                            "JetPack",
                            probe.system.jetson),
                "pip uninstall -y torch, then install NVIDIA's wheel for this JetPack");
}

struct InstalledLibrary {
  std::string version, where;
};

// Of CUDA's runtime: a package of Python's, or a toolkit.
std::vector<InstalledLibrary> CudaRuntimes(const Probe& probe) {
  std::vector<InstalledLibrary> runtimes;
  for (const Probe::Package& package : probe.python.packages) {
    if (package.name.starts_with("nvidia-cuda-runtime"))
      runtimes.push_back({package.version, package.name});
  }
  for (const Probe::Library& toolkit : probe.cuda.toolkits)
    runtimes.push_back({toolkit.version, toolkit.path});
  return runtimes;
}

// Python's package for that CUDA is loaded first, then what the loader finds first.
std::optional<InstalledLibrary> LoadedCudnn(const Probe& probe, const std::string& cuda) {
  const std::string name = "nvidia-cudnn-cu" + Version(cuda).Text(1);
  if (const Probe::Package* package = FindPackage(probe, name))
    return InstalledLibrary{package->version, package->name};
  if (probe.cuda.cudnn.empty()) return std::nullopt;
  return InstalledLibrary{probe.cuda.cudnn.front().version, probe.cuda.cudnn.front().path};
}

std::string ListText(const std::vector<InstalledLibrary>& libraries) {
  std::string text;
  for (const InstalledLibrary& library : libraries)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", library.version, library.where);
  return text.empty() ? "none is installed" : "installed: " + text;
}

// The major release must be the same.
void JudgeCudaRuntime(const Framework& framework, Judgement& judgement) {
  const std::vector<InstalledLibrary> runtimes = CudaRuntimes(judgement.probe);
  const int wanted = Version(framework.cuda).at(0);
  const bool found = std::any_of(runtimes.begin(), runtimes.end(), [&](const auto& runtime) {
    return Version(runtime.version).at(0) == wanted;
  });
  if (found) return;
  judgement.Add(Severity::kBlocking, framework.Title(),
                fmt::format("it needs CUDA {}; {}; it does not use the GPU", framework.cuda,
                            ListText(runtimes)),
                GpuCommand(framework, judgement.probe), framework.row);
}

void JudgeCudnn(const Framework& framework, Judgement& judgement) {
  const std::optional<InstalledLibrary> cudnn = LoadedCudnn(judgement.probe, framework.cuda);
  if (framework.cudnn.empty() || (cudnn && ServesCudnn(cudnn->version, framework.cudnn))) return;
  judgement.Add(Severity::kBlocking, framework.Title(),
                fmt::format("it needs cuDNN {} or a newer {}.x; {}", framework.cudnn,
                            Version(framework.cudnn).at(0),
                            cudnn ? fmt::format("{} is loaded ({})", cudnn->version, cudnn->where)
                                  : "none is installed"),
                GpuCommand(framework, judgement.probe), framework.row);
}

bool IsInPath(const std::string& file, const std::string& search_path) {
  const std::string folder = file.substr(0, file.rfind('/'));
  const std::vector<std::string_view> folders = SplitAt(search_path, ':');
  return std::any_of(folders.begin(), folders.end(), [&](std::string_view part) {
    while (part.size() > 1 && part.ends_with('/')) part.remove_suffix(1);
    return part == folder;
  });
}

// LD_LIBRARY_PATH comes before the libraries that a wheel brings.
void JudgeShadowing(const Framework& framework, Judgement& judgement) {
  const Probe::Cuda& cuda = judgement.probe.cuda;
  if (framework.cudnn.empty() || cuda.cudnn.empty()) return;
  const Probe::Library& first = cuda.cudnn.front();
  if (!IsInPath(first.path, cuda.library_path) || ServesCudnn(first.version, framework.cudnn))
    return;
  judgement.Add(Severity::kBlocking, framework.Title(),
                fmt::format("it brings cuDNN {}; LD_LIBRARY_PATH has {} ({}), which is loaded "
                            "instead",
                            framework.cudnn, first.version, first.path),
                "unset LD_LIBRARY_PATH", framework.row);
}

void JudgeOnNvidia(const Framework& framework, Judgement& judgement) {
  if (framework.package == "onnxruntime" && FindPackage(judgement.probe, "onnxruntime-gpu")) return;
  if (framework.cuda.empty()) {
    judgement.Add(Severity::kWarning, framework.Title(),
                  "it is built without CUDA: it does not use the GPU",
                  GpuCommand(framework, judgement.probe));
    return;
  }
  JudgeDriverOf(framework, judgement);
  JudgeJetson(framework, judgement);
  JudgeWheel(framework, judgement);
  if (framework.brings_libraries) return JudgeShadowing(framework, judgement);
  JudgeCudaRuntime(framework, judgement);
  JudgeCudnn(framework, judgement);
}

// Only AMD's GPUs are there.
void JudgeOnAmd(const Framework& framework, Judgement& judgement) {
  if (!framework.rocm.empty() || framework.kind != FrameworkKind::kPyTorch) return;
  const CompatRow* row = FindCompat("pytorch", framework.version);
  if (row == nullptr || row->rocm.empty()) return;
  judgement.Add(framework.cuda.empty() ? Severity::kWarning : Severity::kBlocking,
                framework.Title(), "it is built without ROCm: it does not use the GPU",
                TorchCommand("torch==" + framework.Release(), RocmBuild(row->rocm)), row);
}

void JudgePython(const Framework& framework, Judgement& judgement) {
  const std::string& version = judgement.probe.python.version;
  if (framework.python.empty() || version.empty() || TakesPython(framework.python, version)) return;
  judgement.Add(Severity::kWarning, framework.Title(),
                fmt::format("it is built for Python {}; this is {}", framework.python, version),
                "make an environment with a Python of that range", framework.row);
}

// JAX, its library and its plug-in are released together; an unequal plug-in is left out.
void JudgeJaxParts(const Framework& framework, Judgement& judgement) {
  if (framework.kind != FrameworkKind::kJax) return;
  for (const Probe::Package& package : judgement.probe.python.packages) {
    const bool is_library = package.name == "jaxlib";
    const bool is_plugin = package.name.starts_with("jax-") && package.name.ends_with("-plugin");
    if ((!is_library && !is_plugin) || Version(package.version) == Version(framework.version))
      continue;
    const bool newer = Version(package.version) > Version(framework.version);
    judgement.Add(
        is_plugin || newer ? Severity::kBlocking : Severity::kWarning, framework.Title(),
        fmt::format("{} is {}; it must be {}", package.name, package.version, framework.version),
        fmt::format("pip install '{}=={}'", package.name, framework.Release()));
  }
}

// Both packages write the same folder.
void JudgeTwoOnnxRuntimes(Judgement& judgement) {
  const Probe::Package* gpu = FindPackage(judgement.probe, "onnxruntime-gpu");
  if (gpu == nullptr || FindPackage(judgement.probe, "onnxruntime") == nullptr) return;
  judgement.Add(Severity::kWarning, "onnxruntime",
                "onnxruntime and onnxruntime-gpu are installed and write the same files: the one "
                "installed last is used",
                fmt::format("pip uninstall -y onnxruntime onnxruntime-gpu && pip install "
                            "onnxruntime-gpu=={}",
                            gpu->version));
}

}  // namespace

void JudgeFrameworks(Judgement& judgement) {
  for (const Framework& framework : judgement.frameworks) {
    if (HasNvidia(judgement.probe)) {
      JudgeOnNvidia(framework, judgement);
    } else if (HasAmd(judgement.probe)) {
      JudgeOnAmd(framework, judgement);
    }
    JudgePython(framework, judgement);
    JudgeJaxParts(framework, judgement);
  }
  JudgeTwoOnnxRuntimes(judgement);
}

}  // namespace ridge

// Frameworks are kept apart, a stage each: two of them in one environment want one cuDNN.
#include "ridge/doctor/dockerfile.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/doctor/frameworks.h"
#include "ridge/doctor/problems.h"

namespace ridge {
namespace {

// The machine's Python where the framework takes it, else the newest that it does.
std::string PythonFor(const std::string& range, const Probe& probe) {
  constexpr int kOldest = 7, kNewest = 14;
  constexpr char kUsual[] = "3.12";
  const std::string& here = probe.python.version;
  if (!here.empty() && TakesPython(range, here)) return here;
  if (range.empty()) return kUsual;
  for (int minor = kNewest; minor >= kOldest; --minor) {
    const std::string version = fmt::format("3.{}", minor);
    if (TakesPython(range, version)) return version;
  }
  return kUsual;
}

std::string PipStage(const std::string& name, const std::string& python, const std::string& comment,
                     const std::string& command) {
  return fmt::format("FROM python:{}-slim AS {}\n{}RUN {}\n", python, name, comment, command);
}

// "# CUDA 12.4: driver 525.60.13 or newer (source)"
std::string CudaComment(const std::string& cuda) {
  const CompatRow* row = DriverFor(cuda);
  if (row == nullptr) return "";
  return fmt::format("# CUDA {}: driver {} or newer ({})\n", cuda, row->driver, row->source);
}

std::string TorchStage(const Framework& framework, const Probe& probe) {
  std::string requirement = "torch==" + framework.Release(), build = "cpu", comment;
  std::string python = framework.python;
  if (HasNvidia(probe)) {
    if (const std::optional<TorchWheel> wheel = TorchWheelFor(framework, probe)) {
      requirement = wheel->requirement;
      build = CudaBuild(wheel->cuda);
      comment = CudaComment(wheel->cuda);
      const CompatRow* row = FindCompat("pytorch", requirement.substr(sizeof("torch==") - 1));
      if (row != nullptr) python = row->python;
    }
  } else if (HasAmd(probe) && framework.row != nullptr && !framework.row->rocm.empty()) {
    build = RocmBuild(framework.row->rocm);
    comment = fmt::format("# ROCm {} ({})\n", framework.row->rocm, framework.row->source);
  }
  return PipStage("torch", PythonFor(python, probe), comment, TorchCommand(requirement, build));
}

// The release that is there, else the newest whose CUDA the driver runs.
const CompatRow* TensorFlowRow(const Framework& framework, const Probe& probe) {
  const CompatRow* best = nullptr;
  for (const CompatRow& row : CompatRows()) {
    if (row.table != "tensorflow_gpu" || !DriverTakes(probe.cuda.driver, row.cuda)) continue;
    if (&row == framework.row) return &row;
    if (best == nullptr || Version(row.key) > Version(best->key)) best = &row;
  }
  return best;
}

// The release that is there where it goes with the machine's ROCm, else the newest that does.
std::string RocmTensorFlowStage(const Framework& framework, const Probe& probe) {
  const CompatRow* row = nullptr;
  std::string requirement = "tensorflow-rocm==" + framework.Release(), source;
  const std::vector<std::string> versions = TensorFlowsFor(probe.rocm.version, row);
  const bool listed = std::any_of(versions.begin(), versions.end(), [&](const auto& version) {
    return Version(version).Text(2) == Version(framework.version).Text(2);
  });
  if (!listed && !versions.empty())
    requirement = fmt::format("tensorflow-rocm=={}.*", Version(versions.front()).Text(2));
  if (row != nullptr) source = fmt::format("# ROCm {} ({})\n", row->key, row->source);
  return fmt::format(
      "FROM rocm/dev-ubuntu-22.04:{}-complete AS tensorflow\n{}RUN apt-get update && apt-get "
      "install -y python3-pip && pip install '{}'\n",
      Version(probe.rocm.version).Text(3), source, requirement);
}

// The images of TensorFlow itself have the CUDA and cuDNN that it was built with.
std::string TensorFlowStage(const Framework& framework, const Probe& probe) {
  if (framework.package == "tensorflow-rocm" && !probe.rocm.version.empty())
    return RocmTensorFlowStage(framework, probe);
  const CompatRow* row = HasNvidia(probe) ? TensorFlowRow(framework, probe) : nullptr;
  if (row == nullptr)
    return fmt::format("FROM tensorflow/tensorflow:{} AS tensorflow\n", framework.Release());
  const std::string release = row == framework.row ? framework.Release() : row->key;
  return fmt::format("FROM tensorflow/tensorflow:{}-gpu AS tensorflow\n{}# cuDNN {} ({})\n",
                     release, CudaComment(row->cuda), row->cudnn, row->source);
}

std::string JaxStage(const Framework& framework, const Probe& probe) {
  std::string extra, comment;
  if (HasNvidia(probe)) {
    const bool thirteen = framework.cuda == "13" && DriverTakes(probe.cuda.driver, "13");
    extra = thirteen ? "[cuda13]" : "[cuda12]";
    comment = CudaComment(thirteen ? "13" : "12");
  }
  return PipStage("jax", PythonFor("", probe), comment,
                  fmt::format("pip install 'jax{}=={}'", extra, framework.Release()));
}

std::string OnnxRuntimeStage(const Framework& framework, const Probe& probe) {
  if (!HasNvidia(probe) || framework.cuda.empty()) {
    return PipStage("onnxruntime", PythonFor("", probe), "",
                    "pip install onnxruntime==" + framework.Release());
  }
  const bool twelve = Version(framework.cuda).at(0) >= 12;
  return fmt::format(
      "FROM nvidia/cuda:{} AS onnxruntime\n{}# cuDNN {} ({})\nRUN apt-get update && apt-get "
      "install -y python3-pip && pip install onnxruntime-gpu=={}\n",
      twelve ? "12.4.1-cudnn-runtime-ubuntu22.04" : "11.8.0-cudnn8-runtime-ubuntu22.04",
      CudaComment(framework.cuda), framework.cudnn, framework.row->source, framework.Release());
}

std::string Stage(const Framework& framework, const Probe& probe) {
  switch (framework.kind) {
    case FrameworkKind::kPyTorch:
      return TorchStage(framework, probe);
    case FrameworkKind::kTensorFlow:
      return TensorFlowStage(framework, probe);
    case FrameworkKind::kJax:
      return JaxStage(framework, probe);
    case FrameworkKind::kOnnxRuntime:
      return OnnxRuntimeStage(framework, probe);
  }
  return "";
}

std::string Head(const Probe& probe) {
  std::string on = "no GPU", run = "docker run NAME";
  if (HasNvidia(probe)) {
    on = probe.cuda.driver.empty() ? "NVIDIA's GPUs, no driver" : "driver " + probe.cuda.driver;
    run = "docker run --gpus all NAME";
  } else if (HasAmd(probe)) {
    on = "AMD's GPUs";
    run = "docker run --device /dev/kfd --device /dev/dri --group-add video NAME";
  }
  return fmt::format(
      "# Written by `ridge doctor --dockerfile` for: {}.\n"
      "# A stage a framework: docker build --target STAGE -t NAME . && {}\n",
      on, run);
}

}  // namespace

Result<std::string> DockerfileFor(const Probe& probe) {
  std::string text;
  const std::vector<Framework> frameworks = FrameworksOf(probe);
  for (size_t i = 0; i < frameworks.size(); ++i) {
    const bool has_gpu_package =
        i + 1 < frameworks.size() && frameworks[i + 1].kind == frameworks[i].kind;
    if (has_gpu_package) continue;
    text += "\n" + Stage(frameworks[i], probe);
  }
  if (text.empty()) {
    return InvalidArgument(
        "--dockerfile: no TensorFlow, PyTorch, JAX or onnxruntime is installed. hint: activate the "
        "environment that has one");
  }
  return Head(probe) + text;
}

}  // namespace ridge

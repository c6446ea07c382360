// Frameworks: which of TensorFlow, PyTorch, JAX and onnxruntime are installed, and what each asks
// of CUDA, cuDNN, ROCm and Python.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/doctor/compat.h"
#include "ridge/doctor/probe.h"

namespace ridge {

enum class FrameworkKind { kPyTorch, kTensorFlow, kJax, kOnnxRuntime };

struct Framework {
  FrameworkKind kind = FrameworkKind::kPyTorch;
  std::string package;  // "torch", "onnxruntime-gpu"
  std::string version;  // "2.5.1+cu124"
  std::string cuda;     // "12.4" or "12": its GPU part was built with; "" without one
  std::string cudnn;    // with which version; "" when not known
  std::string rocm;
  std::string python;              // the range; "" when not known
  bool brings_libraries = false;   // CUDA's and cuDNN's come with the package itself
  const CompatRow* row = nullptr;  // what the above is from; may be nullptr

  std::string Title() const { return package + " " + version; }
  std::string Release() const;  // "2.5.1": without "+cu124"
};

// In the order of FrameworkKind; of onnxruntime both packages, if both are there.
std::vector<Framework> FrameworksOf(const Probe& probe);

const Probe::Package* FindPackage(const Probe& probe, const std::string& name);

// The command that installs this torch with this CUDA ("12.4"), or with this ROCm.
std::string TorchCommand(const std::string& requirement, const std::string& build);
std::string CudaBuild(const std::string& cuda);  // "cu124"
std::string RocmBuild(const std::string& rocm);  // "rocm6.2"

// A wheel of torch: "2.5.1" or "2.11.*" with CUDA "12.4".
struct TorchWheel {
  std::string requirement;  // of pip: "torch==2.11.*"
  std::string cuda;
  bool same_release = false;  // as the one that is installed
};
// The wheel with the newest CUDA that the machine's driver and GPUs run: of the release that is
// installed, else of the newest release that has one.
std::optional<TorchWheel> TorchWheelFor(const Framework& framework, const Probe& probe);

// The row that says what GPUs a wheel of torch has code for; nullptr when that is not known.
const CompatRow* TorchWheelCode(const std::string& version, const std::string& cuda,
                                const Probe& probe);

// The releases of TensorFlow that go with this ROCm, newest first; `row` says who says so.  None
// when nothing is known.
std::vector<std::string> TensorFlowsFor(const std::string& rocm, const CompatRow*& row);

// The versions behind a name in the notes of rocm_framework: "PyTorch 2.4; TensorFlow 2.17.0,
// 2.16.2; JAX 0.4.31".
std::vector<std::string> VersionsIn(const std::string& notes, const std::string& name);

// A cuDNN of the same major release that is no older by the minor one.
bool ServesCudnn(const std::string& cudnn, const std::string& wanted);

// The least driver that a program built with `cuda` needs is at most `driver`; true when either is
// not known.
bool DriverTakes(const std::string& driver, const std::string& cuda);

}  // namespace ridge

// AMD's GPUs: the kernel's device, who may open it, and which GPUs a ROCm release has.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/units.h"
#include "ridge/doctor/problems.h"

namespace ridge {
namespace {

constexpr char kDevice[] = "/dev/kfd";

bool WantsRocm(const Judgement& judgement) {
  return !judgement.probe.rocm.version.empty() ||
         std::any_of(judgement.frameworks.begin(), judgement.frameworks.end(),
                     [](const Framework& framework) { return !framework.rocm.empty(); });
}

constexpr char kDockerRun[] =
    "docker run --device /dev/kfd --device /dev/dri --group-add video --group-add render ...";

// Many processors have a small AMD GPU; that it is not used blocks nobody.
void JudgeDevice(Judgement& judgement) {
  const Probe& probe = judgement.probe;
  const bool contained = !probe.system.container.empty();
  const Severity severity = WantsRocm(judgement) ? Severity::kBlocking : Severity::kNote;
  if (!probe.rocm.device_file) {
    judgement.Add(severity, kDevice,
                  fmt::format("{} of AMD, and {} is missing",
                              FormatCountOf(probe.rocm.pci_gpus, "GPU"), kDevice),
                  contained ? kDockerRun : "sudo modprobe amdgpu, or install amdgpu-dkms");
    return;
  }
  if (probe.rocm.device_access) return;
  judgement.Add(severity, kDevice, "this user may not open it",
                contained ? kDockerRun : "sudo usermod -aG render,video $USER, then log in again");
}

// The release itself, else the last one before it.
const CompatRow* GpusOfRocm(const std::string& version) {
  const CompatRow* best = nullptr;
  for (const CompatRow& row : CompatRows()) {
    if (row.table != "rocm_gfx" || Version(row.key) > Version(version)) continue;
    if (best == nullptr || Version(row.key) > Version(best->key)) best = &row;
  }
  return best;
}

// The architecture whose code a GPU of the same family runs, as HSA_OVERRIDE_GFX_VERSION has it.
std::string OverrideFor(const std::string& gfx) {
  if (gfx.starts_with("gfx103")) return "10.3.0";
  return gfx.starts_with("gfx110") ? "11.0.0" : "";
}

void JudgeGfx(const Probe::Gpu& gpu, Judgement& judgement) {
  const Probe::Rocm& rocm = judgement.probe.rocm;
  const CompatRow* row = GpusOfRocm(rocm.version);
  if (rocm.version.empty() || row == nullptr || !rocm.gfx_override.empty()) return;
  if (std::find(row->gfx.begin(), row->gfx.end(), gpu.architecture) != row->gfx.end()) return;
  const std::string override_with = OverrideFor(gpu.architecture);
  judgement.Add(Severity::kWarning, "ROCm",
                fmt::format("{} does not list {}{}", rocm.version, gpu.architecture,
                            gpu.name.empty() ? "" : " (" + gpu.name + ")"),
                override_with.empty() ? "use a release of ROCm that lists the GPU"
                                      : "export HSA_OVERRIDE_GFX_VERSION=" + override_with,
                row);
}

void JudgeTensorFlow(const Framework& framework, Judgement& judgement) {
  if (framework.package != "tensorflow-rocm") return;
  const std::string& rocm = judgement.probe.rocm.version;
  const CompatRow* row = nullptr;
  const std::vector<std::string> versions = TensorFlowsFor(rocm, row);
  const bool listed = std::any_of(versions.begin(), versions.end(), [&](const auto& version) {
    return Version(version).Text(2) == Version(framework.version).Text(2);
  });
  if (listed || versions.empty()) return;
  judgement.Add(
      Severity::kBlocking, framework.Title(),
      fmt::format("ROCm {} goes with TensorFlow {}", rocm, fmt::join(versions, ", ")),
      fmt::format("pip install 'tensorflow-rocm=={}.*'", Version(versions.front()).Text(2)), row);
}

}  // namespace

void JudgeAmd(Judgement& judgement) {
  if (!HasAmd(judgement.probe)) return;
  JudgeDevice(judgement);
  std::vector<std::string> seen;
  for (const Probe::Gpu& gpu : judgement.probe.rocm.gpus) {
    if (std::find(seen.begin(), seen.end(), gpu.architecture) == seen.end())
      JudgeGfx(gpu, judgement);
    seen.push_back(gpu.architecture);
  }
  for (const Framework& framework : judgement.frameworks) JudgeTensorFlow(framework, judgement);
}

}  // namespace ridge

// PlannedDevice: answers the planner for a device that is not here, from what is published of it.
//
// Every operator has one kernel, in row-major layouts; convolutions of images with few channels
// have another one that reads padded ones (padded_channels.h).  Seconds are those of a roofline
// whose peaks are scaled by what devices were seen to reach, workspaces are those of
// device_workspaces.h; no answer was measured on the device.  The constants and their sources are
// in planned_device.cc.
#pragma once
#include <memory>

#include "ridge/lower/kernel_query.h"
#include "ridge/lower/roofline.h"
#include "ridge/plan/hardware/device_workspaces.h"
#include "ridge/plan/hardware/hardware.h"
#include "ridge/plan/hardware/software.h"

namespace ridge {

// How products of f32 run: exactly, or with the 10 bits of mantissa of tf32 (as f32 where the
// device has no tf32).
enum class F32Products { kExact, kTf32 };

// How a device is used.
struct DeviceUse {
  F32Products products = F32Products::kExact;
  DType operands = DType::kF32;  // of products
  bool linear_fp8 = false;       // those of linear layers are rounded to 8 bits
  Software software = {};
  bool needs_memory = true;    // false: a CPU's may be unknown
  AskConv ask_conv = nullptr;  // about convolutions that are not on record; null: nobody is asked
  // Of ridge on GPUs of NVIDIA's, outlives the device; null: other programs, which have bounds.
  const AbsentKernels* kernels = nullptr;
};

// What a plan for the device needs to know beyond its kernels.
struct PlannedHardware {
  DeviceProfile profile;
  int64_t memory_bytes = 0;     // that one process may use, at least; 0: not known
  double peak_flops_per_s = 0;  // of products, as the sheet has it
  // Of the link to the host, one direction; 0: not known, or a CPU, whose memory is the host's.
  double host_link_bytes_per_s = 0;
  int64_t context_spread_bytes = 0;  // by which the profile's context may be too large; 0: a CPU
};

// Fails with kUnsupported when the device has no known memory (where it is needed), bandwidth or
// rate of f32, or of fp8 where it is used; the message names the missing keys.
Result<PlannedHardware> PlanHardware(const Hardware& hardware, const DeviceUse& use = {});

// Between kernels that are launched one by one.
inline constexpr double kEagerLaunchSeconds = 5e-6;

// Kernels that a program that runs step by step launches for the operator: one, and one for each
// pointwise step that is joined to it.
int64_t EagerKernels(const OpDef& op, const OpCall& call);

// The share of its sheet's peak that the device's power lets products of `precision` ("bf16",
// "f16", "fp8" or "tf32") sustain; 1 for other types, and where that is not known.
double SustainedShare(const Hardware& hardware, const std::string& precision);

class PlannedDevice : public KernelQuery {
 public:
  // REQUIRES: PlanHardware(hardware) is ok.
  explicit PlannedDevice(const Hardware& hardware, const DeviceUse& use = {});

  MemorySpace memory() override;
  const RewriteRules& rules() const override { return *rules_; }
  const CostModel& nominal() const override { return model_; }
  bool Multiplies(DType operands) const override;
  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override;
  KernelCandidates SerialCandidates(const OpDef&, const OpCall&,
                                    std::span<const LayoutId>) override {
    return {};
  }
  int64_t LayoutBytes(LayoutId layout, const TensorType& type) const override;
  std::string LayoutName(LayoutId layout) const override;
  double BestEfficiency(const OpDef& op, const OpCall& call) override;
  KernelChoice Reorder(const TensorType& type, LayoutId from, LayoutId to) override;
  std::optional<KernelChoice> SerialReorder(const TensorType&, LayoutId, LayoutId) override {
    return std::nullopt;
  }

 private:
  KernelChoice ChoiceFor(const OpDef& op, const OpCall& call) const;
  // That reads the image as PaddedCall() has it.
  KernelChoice PaddedChoice(const OpDef& op, const OpCall& call, const OpCall& padded) const;
  // Of an image that is read or written with padded channels, beyond its own bytes.
  double PaddingSeconds(const TensorType& image) const;
  double EfficiencyOf(const OpDef& op, const OpCall& call) const;
  // Of the rate of a product of equal arithmetic.
  double ArithmeticShareOf(const OpDef& op, const OpCall& call) const;
  // Of the casts of a linear layer's operands to 8 bits; 0: it multiplies as the others.
  double Fp8CastSeconds(const OpDef& op, const OpCall& call) const;
  // Of the copies between a program's images and those that a convolution reads and writes.
  double ImageCopySeconds(const OpDef& op, const OpCall& call) const;
  // Of what the operator's cost does not count when its parts run one by one.
  double EagerSeconds(const OpDef& op, const OpCall& call) const;

  const Hardware hardware_;
  const bool eager_, reduced_;
  const double capability_;  // of CUDA; 0: another device
  const bool pads_, copies_images_, winograd_;
  const double fp8_speed_;  // of linear layers over products of 16 bits; 0: they have no 8 bits
  const double ramp_s_;     // that short products lose
  const DeviceWorkspaces workspaces_;
  const Roofline model_;
  const std::unique_ptr<RewriteRules> rules_;
};

}  // namespace ridge

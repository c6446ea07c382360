#include "ridge/backend/reference/reference_backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <vector>

#include "ridge/backend/cpu/host_device.h"
#include "ridge/backend/cpu/host_rules.h"
#include "ridge/backend/cpu/nominal_profile.h"
#include "ridge/backend/host_kernel.h"
#include "ridge/core/rounding.h"
#include "ridge/lower/roofline.h"

namespace ridge {
namespace {

// A tensor that is already f64 is used in place; all others get a double copy in the
// workspace.
int64_t CopyBytes(const TensorType& type) {
  if (type.dtype == DType::kF64) return 0;
  return RoundUp(type.elements() * 8, 64);
}

int64_t WorkspaceBytes(const OpCall& call) {
  int64_t bytes = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.has_input(i)) bytes += CopyBytes(call.inputs[i]);
  }
  for (const TensorType& type : call.outputs) bytes += CopyBytes(type);
  return bytes;
}

class ReferenceKernel : public HostKernel<ReferenceKernel> {
 public:
  ReferenceKernel(const OpDef& op, const OpCall& call)
      : op_(op), call_(call), in_(call.inputs.size()), out_(call.outputs.size()) {}

  Status Run(const KernelBuffers& buffers) {
    auto* scratch = static_cast<std::byte*>(buffers.workspace);
    for (size_t i = 0; i < in_.size(); ++i) {
      in_[i] = nullptr;
      if (call_.has_input(i)) in_[i] = LoadInput(call_.inputs[i], buffers.inputs[i], scratch);
    }
    for (size_t i = 0; i < out_.size(); ++i) {
      const bool direct = call_.outputs[i].dtype == DType::kF64;
      out_[i] = static_cast<double*>(direct ? buffers.outputs[i] : scratch);
      scratch += CopyBytes(call_.outputs[i]);
    }
    RunReference(op_, call_, in_, out_);
    for (size_t i = 0; i < out_.size(); ++i) {
      const TensorType& type = call_.outputs[i];
      if (type.dtype != DType::kF64)
        ConvertFromDouble(type.dtype, out_[i], buffers.outputs[i], type.elements());
    }
    return Status();
  }

 private:
  static const double* LoadInput(const TensorType& type, const void* data, std::byte*& scratch) {
    if (type.dtype == DType::kF64) return static_cast<const double*>(data);
    auto* copy = reinterpret_cast<double*>(scratch);
    ConvertToDouble(type.dtype, data, copy, type.elements());
    scratch += CopyBytes(type);
    return copy;
  }

  const OpDef& op_;
  const OpCall call_;
  std::vector<const double*> in_;
  std::vector<double*> out_;
};

class ReferenceBackend : public Backend {
 public:
  const RewriteRules& rules() const override { return HostRules(); }
  const CostModel& nominal() const override { return nominal_; }
  const std::string& name() const override { return name_; }
  int threads() const override { return 1; }
  Device& device() override { return device_; }
  bool Multiplies(DType) const override { return true; }

  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId>) override {
    return {{ReferenceChoice(op, call)}, {}};
  }
  KernelCandidates SerialCandidates(const OpDef&, const OpCall&,
                                    std::span<const LayoutId>) override {
    return {};
  }
  std::optional<KernelChoice> SerialReorder(const TensorType&, LayoutId, LayoutId) override {
    return std::nullopt;
  }
  int64_t LayoutBytes(LayoutId, const TensorType& type) const override { return type.bytes(); }
  std::string LayoutName(LayoutId) const override { return "row_major"; }
  KernelChoice Reorder(const TensorType&, LayoutId, LayoutId) override {
    throw Bug("the reference backend knows one layout");
  }
  Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                         const KernelChoice&) override {
    return CreateReferenceKernel(op, call);
  }
  Result<std::unique_ptr<Kernel>> CreateReorder(const TensorType&, const KernelChoice&) override {
    throw Bug("the reference backend knows one layout");
  }

 private:
  const std::string name_ = "reference";
  const Roofline nominal_{NominalProfile(/*threads=*/1, UsedInstructions())};
  cpu::HostDevice device_{/*threads=*/1};
};

}  // namespace

KernelChoice ReferenceChoice(const OpDef& op, const OpCall& call) {
  KernelChoice choice;
  choice.kernel = "reference";
  choice.input_layouts.assign(call.inputs.size(), kRowMajor);
  choice.output_layouts.assign(call.outputs.size(), kRowMajor);
  choice.workspace_bytes = WorkspaceBytes(call);
  choice.efficiency = 0.005;
  choice.key = "reference " + CallKey(op, call);
  return choice;
}

std::unique_ptr<Kernel> CreateReferenceKernel(const OpDef& op, const OpCall& call) {
  return std::make_unique<ReferenceKernel>(op, call);
}

std::unique_ptr<Backend> MakeReferenceBackend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace ridge

// layer_norm and its gradient, f32; y and dy may be bf16.  Threads share the rows.
//
// dscale and dshift are sums over all rows: each part keeps its own sums in the workspace, and
// these are added in order of the part.
#include <algorithm>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/layer_norm_rows.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cpu {
namespace {

// x as rows [outer, extent].
AxisView RowsOf(const OpCall& call) { return ViewTrailing(call.inputs[0].dims, CallAxis(call)); }

// Y: float, or uint16_t for bf16.
template <typename Y>
class LayerNormKernel : public Kernel {
 public:
  LayerNormKernel(const OpCall& call, int threads)
      : rows_(RowsOf(call)), epsilon_(call.number("epsilon")), threads_(threads) {}

  Status Run(const KernelBuffers& b) override {
    const auto in = [&](size_t i) { return static_cast<const float*>(b.inputs[i]); };
    const auto out = [&](size_t i) { return static_cast<float*>(b.outputs[i]); };
    const float* scale = b.inputs.size() > 1 ? in(1) : nullptr;
    const float* shift = b.inputs.size() > 2 ? in(2) : nullptr;
    ParallelFor(threads_, rows_.outer, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        LayerNormRow(in(0) + r * rows_.extent, rows_.extent, epsilon_, scale, shift,
                     static_cast<Y*>(b.outputs[0]) + r * rows_.extent, out(1) + r, out(2) + r);
      }
    });
    return Status();
  }

 private:
  const AxisView rows_;
  const double epsilon_;
  const int threads_;
};

// dscale and dshift of one part.
int64_t PartialFloats(const AxisView& rows) { return RoundUpFloats(2 * rows.extent); }

template <typename Y>
class LayerNormGradKernel : public Kernel {
 public:
  LayerNormGradKernel(const OpCall& call, int threads)
      : rows_(RowsOf(call)), has_scale_(call.has_input(4)), threads_(threads) {}

  Status Run(const KernelBuffers& b) override {
    auto* sums = static_cast<float*>(b.workspace);
    ForEachPart(threads_, [&](int part) {
      float* own = has_scale_ ? sums + part * PartialFloats(rows_) : nullptr;
      if (own != nullptr) std::fill_n(own, 2 * rows_.extent, 0.0F);
      RunPart(b, PartOf(rows_.outer, threads_, part), own);
    });
    if (has_scale_) AddParts(sums, b);
    return Status();
  }

 private:
  void RunPart(const KernelBuffers& b, Range range, float* own) const {
    const auto in = [&](size_t i) { return static_cast<const float*>(b.inputs[i]); };
    auto* dx = static_cast<float*>(b.outputs[0]);
    for (int64_t r = range.begin; r < range.end; ++r) {
      const int64_t at = r * rows_.extent;
      LayerNormGradRow(in(0) + at, static_cast<const Y*>(b.inputs[3]) + at, rows_.extent, in(1)[r],
                       in(2)[r], has_scale_ ? in(4) : nullptr, dx + at, own,
                       own == nullptr ? nullptr : own + rows_.extent);
    }
  }

  void AddParts(const float* sums, const KernelBuffers& b) const {
    auto* dscale = static_cast<float*>(b.outputs[1]);
    auto* dshift = static_cast<float*>(b.outputs[2]);
    for (int64_t k = 0; k < rows_.extent; ++k) {
      float scale_sum = 0, shift_sum = 0;
      for (int part = 0; part < threads_; ++part) {
        scale_sum += sums[part * PartialFloats(rows_) + k];
        shift_sum += sums[part * PartialFloats(rows_) + rows_.extent + k];
      }
      dscale[k] = scale_sum;
      dshift[k] = shift_sum;
    }
  }

  const AxisView rows_;
  const bool has_scale_;
  const int threads_;
};

// y or dy.
DType NarrowType(const OpDef& op, const OpCall& call) {
  return op.name == "layer_norm_grad" ? call.inputs[3].dtype : call.outputs[0].dtype;
}

// y or dy may be bf16.
const char* Refuse(const CandidateQuery& q) {
  OpCall wide = q.call;
  TensorType& type = q.op.name == "layer_norm_grad" ? wide.inputs[3] : wide.outputs[0];
  if (type.dtype == DType::kBF16) type.dtype = DType::kF32;
  return AllOf(wide, DType::kF32) ? nullptr : refusal::kDType;
}

int64_t WorkspaceBytes(const CandidateQuery& q) {
  const bool sums = q.op.name == "layer_norm_grad" && q.call.has_input(4);
  return sums ? q.threads() * PartialFloats(RowsOf(q.call)) * 4 : 0;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const bool narrow = NarrowType(q.op, q.call) == DType::kBF16;
  if (q.op.name == "layer_norm_grad") {
    return narrow ? MakeKernel<LayerNormGradKernel<uint16_t>>(q, choice)
                  : MakeKernel<LayerNormGradKernel<float>>(q, choice);
  }
  return narrow ? MakeKernel<LayerNormKernel<uint16_t>>(q, choice)
                : MakeKernel<LayerNormKernel<float>>(q, choice);
}

}  // namespace

KernelDef LayerNormKernelDef() {
  return {.name = "cpu.{op}",
          .ops = {"layer_norm", "layer_norm_grad"},
          .dtypes = {DType::kF32},
          .refuse = Refuse,
          .workspace_bytes = WorkspaceBytes,
          .make = Make};
}

}  // namespace ridge::cpu

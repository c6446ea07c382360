// layer_norm, rms_norm and their gradients, f32; y and dy of layer_norm may be bf16.  Threads share
// the rows.
//
// rms_norm is layer_norm without mean and shift, which `kCenter` leaves out.  dscale and dshift are
// sums over all rows: each part keeps its own sums in the workspace, and these are added in order
// of the part.
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

// x, scale, shift -> y, mean, rstd.  Y: float, or uint16_t for bf16.
template <bool kCenter, typename Y>
class NormKernel : public HostKernel<NormKernel<kCenter, Y>> {
 public:
  NormKernel(const OpCall& call, int threads)
      : rows_(RowsOf(call)), epsilon_(call.number("epsilon")), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    const auto in = [&](size_t i) {
      return i < b.inputs.size() ? static_cast<const float*>(b.inputs[i]) : nullptr;
    };
    const auto out = [&](size_t i) { return static_cast<float*>(b.outputs[i]); };
    const float *x = in(0), *scale = in(1), *shift = in(2);
    ParallelFor(threads_, rows_.outer, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t at = r * rows_.extent;
        Y* y = static_cast<Y*>(b.outputs[0]) + at;
        if constexpr (kCenter) {
          LayerNormRow(x + at, rows_.extent, epsilon_, scale, shift, y, out(1) + r, out(2) + r);
        } else {
          RmsNormRow(x + at, rows_.extent, epsilon_, scale, y, out(1) + r);
        }
      }
    });
    return Status();
  }

 private:
  const AxisView rows_;
  const double epsilon_;
  const int threads_;
};

// x, mean, rstd, dy, scale -> dx, dscale, dshift
template <bool kCenter, typename Y>
class NormGradKernel : public HostKernel<NormGradKernel<kCenter, Y>> {
 public:
  NormGradKernel(const OpCall& call, int threads)
      : rows_(RowsOf(call)), has_scale_(call.has_input(kScale)), threads_(threads) {}

  static int64_t WorkspaceFloats(const OpCall& call, int threads) {
    const NormGradKernel kernel(call, threads);
    return kernel.has_scale_ ? threads * kernel.PartialFloats() : 0;
  }

  Status Run(const KernelBuffers& b) {
    auto* sums = static_cast<float*>(b.workspace);
    ForEachPart(threads_, [&](int part) {
      float* own = has_scale_ ? sums + part * PartialFloats() : nullptr;
      if (own != nullptr) std::fill_n(own, kSums * rows_.extent, 0.0F);
      RunPart(b, PartOf(rows_.outer, threads_, part), own);
    });
    for (int64_t k = 0; has_scale_ && k < kSums; ++k)
      AddParts(sums + k * rows_.extent, static_cast<float*>(b.outputs[static_cast<size_t>(k + 1)]));
    return Status();
  }

 private:
  static constexpr size_t kRstd = kCenter ? 2 : 1, kDy = kRstd + 1, kScale = kRstd + 2;
  static constexpr int64_t kSums = kCenter ? 2 : 1;

  // The sums of one part.
  int64_t PartialFloats() const { return RoundUpFloats(kSums * rows_.extent); }

  void RunPart(const KernelBuffers& b, Range range, float* own) const {
    const auto in = [&](size_t i) { return static_cast<const float*>(b.inputs[i]); };
    const float* scale = has_scale_ ? in(kScale) : nullptr;
    for (int64_t r = range.begin; r < range.end; ++r) {
      const int64_t at = r * rows_.extent;
      const Y* dy = static_cast<const Y*>(b.inputs[kDy]) + at;
      float* dx = static_cast<float*>(b.outputs[0]) + at;
      if constexpr (kCenter) {
        LayerNormGradRow(in(0) + at, dy, rows_.extent, in(1)[r], in(kRstd)[r], scale, dx, own,
                         own == nullptr ? nullptr : own + rows_.extent);
      } else {
        RmsNormGradRow(in(0) + at, dy, rows_.extent, in(kRstd)[r], scale, dx, own);
      }
    }
  }

  // Adding -0 leaves every number as it is.
  void AddParts(const float* sums, float* total) const {
    std::fill_n(total, rows_.extent, kCenter ? 0.0F : -0.0F);
    for (int part = 0; part < threads_; ++part) {
      const float* own = sums + part * PartialFloats();
      for (int64_t k = 0; k < rows_.extent; ++k) total[k] += own[k];
    }
  }

  const AxisView rows_;
  const bool has_scale_;
  const int threads_;
};

bool IsGradient(const OpDef& op) { return op.name.ends_with("_grad"); }

// y or dy of layer_norm.
TensorType& NarrowTensor(const OpDef& op, OpCall& call) {
  return IsGradient(op) ? call.inputs[3] : call.outputs[0];
}

const char* RefuseLayerNorm(const CandidateQuery& q) {
  OpCall wide = q.call;
  TensorType& type = NarrowTensor(q.op, wide);
  if (type.dtype == DType::kBF16) type.dtype = DType::kF32;
  return AllOf(wide, DType::kF32) ? nullptr : refusal::kDType;
}

template <bool kCenter>
int64_t WorkspaceBytes(const CandidateQuery& q) {
  if (!IsGradient(q.op)) return 0;
  return 4 * NormGradKernel<kCenter, float>::WorkspaceFloats(q.call, q.threads());
}

template <bool kCenter, typename Y>
Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  return IsGradient(q.op) ? MakeKernel<NormGradKernel<kCenter, Y>>(q, choice)
                          : MakeKernel<NormKernel<kCenter, Y>>(q, choice);
}

Result<std::unique_ptr<Kernel>> MakeLayerNorm(const CandidateQuery& q, const KernelChoice& choice) {
  OpCall call = q.call;
  const bool narrow = NarrowTensor(q.op, call).dtype == DType::kBF16;
  return narrow ? Make<true, uint16_t>(q, choice) : Make<true, float>(q, choice);
}

}  // namespace

KernelDef LayerNormKernelDef() {
  return {.name = "cpu.{op}",
          .ops = {"layer_norm", "layer_norm_grad"},
          .dtypes = {DType::kF32},
          .refuse = RefuseLayerNorm,
          .workspace_bytes = WorkspaceBytes<true>,
          .make = MakeLayerNorm};
}

KernelDef RmsNormKernelDef() {
  return {.name = "cpu.{op}",
          .ops = {"rms_norm", "rms_norm_grad"},
          .dtypes = {DType::kF32},
          .one_dtype = true,
          .workspace_bytes = WorkspaceBytes<false>,
          .make = Make<false, float>};
}

}  // namespace ridge::cpu

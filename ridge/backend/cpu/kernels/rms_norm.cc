// rms_norm and its gradient, f32; threads share the rows.
//
// dscale is a sum over all rows: each part keeps its own in the workspace, and these are added in
// order of the part.
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

class RmsNormKernel : public Kernel {
 public:
  RmsNormKernel(const OpCall& call, int threads)
      : rows_(RowsOf(call)), epsilon_(call.number("epsilon")), threads_(threads) {}

  Status Run(const KernelBuffers& b) override {
    const auto* x = static_cast<const float*>(b.inputs[0]);
    const auto* scale = b.inputs.size() > 1 ? static_cast<const float*>(b.inputs[1]) : nullptr;
    auto *y = static_cast<float*>(b.outputs[0]), *rstd = static_cast<float*>(b.outputs[1]);
    ParallelFor(threads_, rows_.outer, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t at = r * rows_.extent;
        RmsNormRow(x + at, rows_.extent, epsilon_, scale, y + at, rstd + r);
      }
    });
    return Status();
  }

 private:
  const AxisView rows_;
  const double epsilon_;
  const int threads_;
};

// dscale of one part.
int64_t PartialFloats(const AxisView& rows) { return RoundUpFloats(rows.extent); }

// x, rstd, dy, scale -> dx, dscale
class RmsNormGradKernel : public Kernel {
 public:
  RmsNormGradKernel(const OpCall& call, int threads)
      : rows_(RowsOf(call)), has_scale_(call.has_input(3)), threads_(threads) {}

  Status Run(const KernelBuffers& b) override {
    auto* sums = static_cast<float*>(b.workspace);
    ForEachPart(threads_, [&](int part) {
      float* own = has_scale_ ? sums + part * PartialFloats(rows_) : nullptr;
      if (own != nullptr) std::fill_n(own, rows_.extent, 0.0F);
      RunPart(b, PartOf(rows_.outer, threads_, part), own);
    });
    if (!has_scale_) return Status();
    auto* dscale = static_cast<float*>(b.outputs[1]);
    std::copy_n(sums, rows_.extent, dscale);
    for (int part = 1; part < threads_; ++part) {
      const float* own = sums + part * PartialFloats(rows_);
      for (int64_t k = 0; k < rows_.extent; ++k) dscale[k] += own[k];
    }
    return Status();
  }

 private:
  void RunPart(const KernelBuffers& b, Range range, float* own) const {
    const auto in = [&](size_t i) { return static_cast<const float*>(b.inputs[i]); };
    auto* dx = static_cast<float*>(b.outputs[0]);
    for (int64_t r = range.begin; r < range.end; ++r) {
      const int64_t at = r * rows_.extent;
      RmsNormGradRow(in(0) + at, in(2) + at, rows_.extent, in(1)[r], has_scale_ ? in(3) : nullptr,
                     dx + at, own);
    }
  }

  const AxisView rows_;
  const bool has_scale_;
  const int threads_;
};

int64_t WorkspaceBytes(const CandidateQuery& q) {
  const bool sums = q.op.name == "rms_norm_grad" && q.call.has_input(3);
  return sums ? q.threads() * PartialFloats(RowsOf(q.call)) * 4 : 0;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  return q.op.name == "rms_norm" ? MakeKernel<RmsNormKernel>(q, choice)
                                 : MakeKernel<RmsNormGradKernel>(q, choice);
}

}  // namespace

KernelDef RmsNormKernelDef() {
  return {.name = "cpu.{op}",
          .ops = {"rms_norm", "rms_norm_grad"},
          .dtypes = {DType::kF32},
          .one_dtype = true,
          .workspace_bytes = WorkspaceBytes,
          .make = Make};
}

}  // namespace ridge::cpu

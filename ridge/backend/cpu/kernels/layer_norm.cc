// layer_norm and its gradient, f32; threads share the rows.
//
// dscale and dshift are sums over all rows: each part keeps its own sums in the workspace, and
// these are added in order of the part.
#include <algorithm>

#include "ridge/backend/cpu/kernels/kernels.h"
#include "ridge/backend/cpu/kernels/layer_norm_rows.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/axis_view.h"

namespace ridge::cpu {
namespace {

// x as rows [outer, extent].
AxisView RowsOf(const OpCall& call) {
  const int64_t axis = call.integer("axis");
  const int rank = call.inputs[0].rank();
  return ViewTrailing(call.inputs[0].dims, static_cast<int>(axis < 0 ? axis + rank : axis));
}

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
                     out(0) + r * rows_.extent, out(1) + r, out(2) + r);
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
int64_t PartialFloats(const AxisView& rows) { return (2 * rows.extent + 15) / 16 * 16; }

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
      LayerNormGradRow(in(0) + at, in(3) + at, rows_.extent, in(1)[r], in(2)[r],
                       has_scale_ ? in(4) : nullptr, dx + at, own,
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

}  // namespace

const char* OfferLayerNorm(const Question& q, std::vector<KernelChoice>& choices) {
  if (AnyEmpty(q.call)) return refusal::kEmpty;
  if (!AllOf(q.call, DType::kF32)) return refusal::kDType;
  KernelChoice choice = MakeChoice(q, "cpu." + q.op.name);
  if (q.op.name == "layer_norm_grad" && q.call.has_input(4))
    choice.workspace_bytes = ThreadsFor(q.cpu, q.op, q.call) * PartialFloats(RowsOf(q.call)) * 4;
  SetKey(q, choice);
  choices.push_back(std::move(choice));
  return nullptr;
}

Result<std::unique_ptr<Kernel>> CreateLayerNorm(const CpuContext& cpu, const OpDef& op,
                                                const OpCall& call, const KernelChoice&) {
  return std::unique_ptr<Kernel>(
      std::make_unique<LayerNormKernel>(call, ThreadsFor(cpu, op, call)));
}

Result<std::unique_ptr<Kernel>> CreateLayerNormGrad(const CpuContext& cpu, const OpDef& op,
                                                    const OpCall& call, const KernelChoice&) {
  return std::unique_ptr<Kernel>(
      std::make_unique<LayerNormGradKernel>(call, ThreadsFor(cpu, op, call)));
}

}  // namespace ridge::cpu

// interpolate in f32 and f64, row-major and in blocks of channels.
//
// nChw16c is the row-major array [B, C/16, H, W, 16]: along height and width the same loop runs
// over rows that are 16 times as wide, and no channels are reordered.
#include <algorithm>
#include <limits>

#include "ridge/backend/cpu/kernels/for_dtype.h"
#include "ridge/backend/cpu/kernels/interpolate_rows.h"
#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cpu {
namespace {

template <typename T>
RowTable<T> TableOf(const OpCall& call) {
  const auto& weights = std::get<std::vector<double>>(call.attrs.at("weights"));
  RowTable<T> table;
  table.starts = call.integers("starts");
  for (const int64_t place : call.integers("places"))
    table.places.push_back(static_cast<int32_t>(place));
  for (const double weight : weights) table.weights.push_back(static_cast<T>(weight));
  return table;
}

AxisView ViewOf(const OpCall& call, LayoutId layout) {
  Dims dims = call.inputs[0].dims;
  const ChannelBlocks blocks = *ChannelBlocksOf(dims, layout);
  if (blocks.block > 1) {
    dims[1] = blocks.blocks;
    dims.push_back(blocks.block);
  }
  return ViewAxis(dims, CallAxis(call));
}

template <typename T>
class InterpolateKernel : public HostKernel<InterpolateKernel<T>> {
 public:
  InterpolateKernel(RowTable<T> table, const AxisView& view, int threads)
      : table_(std::move(table)), view_(view), threads_(threads) {
    if (view_.inner == 1) table_.MakeRuns();
  }

  Status Run(const KernelBuffers& b) {
    const auto* x = static_cast<const T*>(b.inputs[0]);
    auto* y = static_cast<T*>(b.outputs[0]);
    const int64_t rows = table_.rows(), plane = view_.extent * view_.inner;
    if (view_.inner == 1) {
      ParallelFor(threads_, view_.outer, 1, [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) SumNarrowRows(table_, x + o * plane, y + o * rows);
      });
      return Status();
    }
    ParallelFor(threads_, view_.outer * rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        SumWideRow(table_, r % rows, view_.inner, x + r / rows * plane, y + r * view_.inner);
    });
    return Status();
  }

 private:
  RowTable<T> table_;
  const AxisView view_;
  const int threads_;
};

void OfferLayout(LayoutId layout, Candidates& candidates) {
  KernelChoice& choice = candidates.Add();
  choice.input_layouts[0] = choice.output_layouts[0] = layout;
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  const Dims& dims = q.call.inputs[0].dims;
  if (dims[static_cast<size_t>(CallAxis(q.call))] > std::numeric_limits<int32_t>::max())
    return refusal::kAttribute;
  const LayoutId layout = q.available_layout(0);
  if (layout != kRowMajor && CallAxis(q.call) >= 2 && ChannelBlocksOf(dims, layout))
    OfferLayout(layout, candidates);
  OfferLayout(kRowMajor, candidates);
  return nullptr;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const AxisView view = ViewOf(q.call, choice.input_layouts.at(0));
  return Reals::Call(q.call.inputs[0].dtype, [&]<typename T>() {
    return std::unique_ptr<Kernel>(
        std::make_unique<InterpolateKernel<T>>(TableOf<T>(q.call), view, q.threads()));
  });
}

}  // namespace

KernelDef InterpolateKernelDef() {
  return {.name = "cpu.interpolate",
          .ops = {"interpolate"},
          .dtypes = Reals::dtypes(),
          .one_dtype = true,
          .offer = Offer,
          .make = Make};
}

}  // namespace ridge::cpu

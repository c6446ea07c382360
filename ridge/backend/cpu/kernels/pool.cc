// max_pool, avg_pool and their gradients: own kernels, because the index of a maximum is ours to
// define (oneDNN's workspace is private) and because the work is one pass over memory.
//
// One spatial dimension is two with a height of 1; three are in pool3d.cc.
//
// Channels lie side by side in nChw16c, so a vector holds one pixel of 16 channels.  Padded
// channels hold zeros and stay zero.
#include "ridge/graph/ops/shared/pool.h"

#include <algorithm>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/pool3d.h"
#include "ridge/backend/cpu/kernels/pool_bf16.h"
#include "ridge/backend/cpu/kernels/pool_rows.h"
#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

PoolShape ShapeOf(const PoolGeometry& g, LayoutId layout) {
  const ChannelBlocks blocks = *ChannelBlocksOf(g.output_dims(), layout);
  return {.y = PoolAxis(g.window.y()),
          .x = PoolAxis(g.window.x()),
          .planes = g.batch * blocks.blocks,
          .lanes = blocks.block,
          .wide_index = PoolIndexDType(g) != DType::kU8};
}

class MaxPoolKernel : public Kernel {
 public:
  MaxPoolKernel(const PoolShape& shape, int threads) : shape_(shape), threads_(threads) {}
  Status Run(const KernelBuffers& b) override {
    const auto* x = static_cast<const float*>(b.inputs[0]);
    auto* y = static_cast<float*>(b.outputs[0]);
    auto* index = static_cast<std::byte*>(b.outputs[1]);
    const int64_t row = shape_.output_row(), index_bytes = shape_.wide_index ? 4 : 1;
    ParallelFor(threads_, shape_.planes * shape_.y.axis.output, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        MaxPoolRow(shape_, x + r / shape_.y.axis.output * shape_.input_plane(),
                   r % shape_.y.axis.output, y + r * row, index + r * row * index_bytes);
      }
    });
    return Status();
  }

 private:
  const PoolShape shape_;
  const int threads_;
};

class MaxPoolGradKernel : public Kernel {
 public:
  MaxPoolGradKernel(const PoolShape& shape, int threads) : shape_(shape), threads_(threads) {}
  Status Run(const KernelBuffers& b) override {
    const auto* index = static_cast<const std::byte*>(b.inputs[0]);
    const auto* dy = static_cast<const float*>(b.inputs[1]);
    auto* dx = static_cast<float*>(b.outputs[0]);
    const int64_t row = shape_.input_row(), index_bytes = shape_.wide_index ? 4 : 1;
    ParallelFor(threads_, shape_.planes * shape_.y.axis.input, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t plane = r / shape_.y.axis.input * shape_.output_plane();
        MaxPoolGradRow(shape_, index + plane * index_bytes, dy + plane, r % shape_.y.axis.input,
                       dx + r * row);
      }
    });
    return Status();
  }

 private:
  const PoolShape shape_;
  const int threads_;
};

class AvgPoolKernel : public Kernel {
 public:
  AvgPoolKernel(const PoolShape& shape, std::vector<float> divisors, bool gradient, int threads)
      : shape_(shape), divisors_(std::move(divisors)), gradient_(gradient), threads_(threads) {}

  Status Run(const KernelBuffers& b) override {
    const auto* from = static_cast<const float*>(b.inputs[0]);
    auto* to = static_cast<float*>(b.outputs[0]);
    const int64_t rows = gradient_ ? shape_.y.axis.input : shape_.y.axis.output;
    const int64_t row = gradient_ ? shape_.input_row() : shape_.output_row();
    const int64_t plane = gradient_ ? shape_.output_plane() : shape_.input_plane();
    const auto run = gradient_ ? AvgPoolGradRow : AvgPoolRow;
    ParallelFor(threads_, shape_.planes * rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        run(shape_, divisors_.data(), from + r / rows * plane, r % rows, to + r * row);
    });
    return Status();
  }

 private:
  const PoolShape shape_;
  const std::vector<float> divisors_;  // [OH, OW]
  const bool gradient_;
  const int threads_;
};

std::vector<float> Divisors(const OpCall& call, const PoolGeometry& g) {
  std::vector<float> divisors;
  for (int64_t oy = 0; oy < g.window.y().output; ++oy) {
    for (int64_t ox = 0; ox < g.window.x().output; ++ox)
      divisors.push_back(static_cast<float>(AvgPoolDivisor(call, g.window, 0, oy, ox)));
  }
  return divisors;
}

// Such a window has the maximum -inf, which must not get into the padding of the channels.
bool HasEmptyWindow(const OpCall& call) {
  const SlidingWindow window = PoolGeometryOf(call).window;
  return std::any_of(window.axes.begin(), window.axes.end(),
                     [](const WindowAxis& axis) { return PoolAxis(axis).has_empty_window; });
}

// Of x or dy: a gradient's index comes before it.
DType DataType(const OpCall& call) { return call.inputs.back().dtype; }

const char* Refuse(const CandidateQuery& q) {
  const bool narrow = DataType(q.call) == DType::kBF16;
  return narrow && PoolGeometryOf(q.call).window.rank == 3 ? refusal::kDType : nullptr;
}

// All tensors of a pool are in one layout.  One lane a pixel is slow: `efficiency` says so.
void OfferLayout(const CandidateQuery& q, LayoutId layout, Candidates& candidates) {
  KernelChoice& choice = candidates.Add(layout == kRowMajor ? 0.1 : 1);
  choice.input_layouts.assign(q.call.inputs.size(), layout);
  choice.output_layouts.assign(q.call.outputs.size(), layout);
  if (DataType(q.call) == DType::kBF16) {
    const PoolShape shape = ShapeOf(PoolGeometryOf(q.call), layout);
    choice.workspace_bytes = PoolBF16WorkspaceBytes(shape, q.threads());
  }
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  for (size_t i = 0; i < q.call.inputs.size(); ++i) {
    const LayoutId layout = q.available_layout(i);
    const auto blocks = ChannelBlocksOf(q.call.inputs[i].dims, layout);
    if (layout == kRowMajor || !blocks || blocks->block < 8) continue;
    if (blocks->padded && HasEmptyWindow(q.call)) continue;
    OfferLayout(q, layout, candidates);
    break;
  }
  OfferLayout(q, kRowMajor, candidates);
  return nullptr;
}

std::unique_ptr<Kernel> MakeF32(const CandidateQuery& q, const PoolGeometry& g,
                                const PoolShape& shape) {
  const int threads = q.threads();
  if (q.op.name == "max_pool") return std::make_unique<MaxPoolKernel>(shape, threads);
  if (q.op.name == "max_pool_grad") return std::make_unique<MaxPoolGradKernel>(shape, threads);
  const bool gradient = q.op.name == "avg_pool_grad";
  return std::make_unique<AvgPoolKernel>(shape, Divisors(q.call, g), gradient, threads);
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const LayoutId layout = choice.output_layouts.at(0);
  const PoolGeometry g = PoolGeometryOf(q.call);
  if (g.window.rank == 3) {
    const int64_t lanes = ChannelBlocksOf(q.call.outputs[0].dims, layout)->block;
    return MakePool3d(q.op, q.call, lanes, q.threads());
  }
  const PoolShape shape = ShapeOf(g, layout);
  if (DataType(q.call) != DType::kBF16) return MakeF32(q, g, shape);
  const bool max = q.op.name.starts_with("max");
  return MakePoolBF16(q.op, shape, max ? std::vector<float>() : Divisors(q.call, g), q.threads());
}

}  // namespace

KernelDef PoolKernelDef() {
  return {.name = "cpu.{op}",
          .ops = {"max_pool", "max_pool_grad", "avg_pool", "avg_pool_grad"},
          .dtypes = {DType::kF32, DType::kBF16},
          .typed_by = kLastInput,
          .refuse = Refuse,
          .in_place = false,
          .offer = Offer,
          .make = Make};
}

}  // namespace ridge::cpu

// max_pool, avg_pool and their gradients: own kernels, because the index of a maximum is ours to
// define (oneDNN's workspace is private) and because the work is one pass over memory.
//
// One spatial dimension is two with a height of 1; three are in pool3d.cc.
//
// Channels are contiguous in nChw16c, so a vector holds one pixel of 16 channels.  Padded
// channels hold zeros and stay zero.
//
// bf16: a plane at a time is widened into the workspace, where it stays in cache while its rows are
// pooled as f32; each finished row is rounded on its way out (docs/design/0010-bf16.md).  Known
// weakness: a plane of 16 channels leaves a cache of 1 MB from about 128x128 pixels on.
#include "ridge/graph/ops/shared/pool.h"

#include <algorithm>
#include <type_traits>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/pool3d.h"
#include "ridge/backend/cpu/kernels/pool_rows.h"
#include "ridge/backend/cpu/kernels/tile_program.h"
#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

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

// What is read and written: elements of a plane, and the rows that are written.
struct Planes {
  int64_t from, to;
  int64_t rows, row;

  Planes(const PoolShape& s, bool gradient)
      : from(gradient ? s.output_plane() : s.input_plane()),
        to(gradient ? s.input_plane() : s.output_plane()),
        rows(gradient ? s.y.axis.input : s.y.axis.output),
        row(gradient ? s.input_row() : s.output_row()) {}

  // A plane and a row in f32.
  int64_t ScratchFloats() const { return RoundUpFloats(from) + RoundUpFloats(row); }
};

bool IsMax(const OpDef& op) { return op.name.starts_with("max"); }
bool IsGradient(const OpDef& op) { return op.name.ends_with("_grad"); }

// T: float, or uint16_t for bf16.
template <typename T>
class PoolKernel : public HostKernel<PoolKernel<T>> {
 public:
  PoolKernel(const OpDef& op, PoolShape shape, std::vector<float> divisors, int threads)
      : shape_(std::move(shape)),
        divisors_(std::move(divisors)),
        planes_(shape_, IsGradient(op)),
        max_(IsMax(op)),
        gradient_(IsGradient(op)),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    const T* from = static_cast<const T*>(b.inputs[max_ && gradient_ ? 1 : 0]);
    T* to = static_cast<T*>(b.outputs[0]);
    if constexpr (std::is_same_v<T, float>) {
      RunRows(b, from, to);
    } else {
      RunPlanes(b, from, to);
    }
    return Status();
  }

 private:
  void RunRows(const KernelBuffers& b, const float* from, float* to) const {
    const int64_t rows = planes_.rows;
    ParallelFor(threads_, shape_.planes * rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        PoolRow(b, r / rows, from + r / rows * planes_.from, r % rows, to + r * planes_.row);
    });
  }

  void RunPlanes(const KernelBuffers& b, const uint16_t* from, uint16_t* to) const {
    ForEachPart(threads_, [&](int part) {
      float* plane = static_cast<float*>(b.workspace) + part * planes_.ScratchFloats();
      float* row = plane + RoundUpFloats(planes_.from);
      const Range own = PartOf(shape_.planes, threads_, part);
      for (int64_t p = own.begin; p < own.end; ++p) {
        WidenRow(from + p * planes_.from, planes_.from, plane);
        for (int64_t r = 0; r < planes_.rows; ++r) {
          PoolRow(b, p, plane, r, row);
          RoundRow(row, planes_.row, to + p * planes_.to + r * planes_.row);
        }
      }
    });
  }

  // Row r of plane p, whose operand is `plane`.
  void PoolRow(const KernelBuffers& b, int64_t p, const float* plane, int64_t r, float* row) const {
    const int64_t index_bytes = shape_.wide_index ? 4 : 1;
    const int64_t index = p * shape_.output_plane() * index_bytes;
    if (max_ && gradient_) {
      MaxPoolGradRow(shape_, static_cast<const std::byte*>(b.inputs[0]) + index, plane, r, row);
    } else if (max_) {
      auto* winners = static_cast<std::byte*>(b.outputs[1]) + index;
      MaxPoolRow(shape_, plane, r, row, winners + r * planes_.row * index_bytes);
    } else if (gradient_) {
      AvgPoolGradRow(shape_, divisors_.data(), plane, r, row);
    } else {
      AvgPoolRow(shape_, divisors_.data(), plane, r, row);
    }
  }

  const PoolShape shape_;
  const std::vector<float> divisors_;  // of averages: [OH, OW]
  const Planes planes_;
  const bool max_, gradient_;
  const int threads_;
};

// Of bf16; a pool and its gradient have as much.
int64_t WorkspaceBytes(const PoolShape& shape, int threads) {
  return threads * 4 *
         std::max(Planes(shape, false).ScratchFloats(), Planes(shape, true).ScratchFloats());
}

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
    choice.workspace_bytes = WorkspaceBytes(shape, q.threads());
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

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const LayoutId layout = choice.output_layouts.at(0);
  const PoolGeometry g = PoolGeometryOf(q.call);
  if (g.window.rank == 3) {
    const int64_t lanes = ChannelBlocksOf(q.call.outputs[0].dims, layout)->block;
    return MakePool3d(q.op, q.call, lanes, q.threads());
  }
  std::vector<float> divisors = IsMax(q.op) ? std::vector<float>() : Divisors(q.call, g);
  std::unique_ptr<Kernel> kernel;
  if (DataType(q.call) == DType::kBF16) {
    kernel = std::make_unique<PoolKernel<uint16_t>>(q.op, ShapeOf(g, layout), std::move(divisors),
                                                    q.threads());
  } else {
    kernel = std::make_unique<PoolKernel<float>>(q.op, ShapeOf(g, layout), std::move(divisors),
                                                 q.threads());
  }
  return kernel;
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

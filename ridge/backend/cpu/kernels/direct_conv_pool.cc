// conv_pool and conv_pool_grad_weight in f32, row-major: the convolution's result exists only in
// registers (direct_conv_pool_simd.cc), and its gradient not at all.
//
// Threads share the images; a forward pass over few images also shares their output channels.  Each
// part of a gradient has sums of its own, which are added in order of the part.
#include "ridge/backend/cpu/kernels/direct_conv_pool.h"

#include <algorithm>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/conv_pool.h"

namespace ridge::cpu {
namespace {

constexpr int64_t kTileBytes = 24 << 10;  // a tile, read for every output channel, stays in L1
constexpr int64_t kMostKernel = 5;        // the widest row of taps that the gradient is made for
constexpr int64_t kFewImages = 8;         // a thread; with less, threads would wait for the last

ConvPoolShape ShapeOf(const OpCall& call, const Dims& w) {
  const ConvPoolGeometry g = *MakeConvPoolGeometry(call, call.inputs[0].dims, w);
  const WindowAxis &y = g.conv.window.y(), &x = g.conv.window.x();
  ConvPoolShape s;
  s.channels = g.conv.inputs();
  s.height = y.input;
  s.width = x.input;
  s.outputs = g.conv.outputs();
  s.kernel_y = y.kernel;
  s.kernel_x = x.kernel;
  s.pad_top = y.pad_begin;
  s.pad_left = x.pad_begin;
  s.padded_width = x.input + x.pad_begin + x.pad_end;
  s.pooled_y = g.pool.window.y().output;
  s.pooled_x = g.pool.window.x().output;
  s.relu = call.attrs.contains("relu") && call.integer("relu") != 0;
  const int64_t row_bytes = s.patch_rows() * s.pooled_x * 4;
  s.tile_rows = std::clamp<int64_t>(kTileBytes / row_bytes, 1, s.pooled_y);
  return s;
}

const Dims& WeightDims(const OpCall& call) {
  return call.attrs.contains("weight_dims") ? call.integers("weight_dims") : call.inputs[1].dims;
}

int64_t TileFloats(const ConvPoolShape& s) {
  return ConvPoolTileFloats(s) + ConvPoolInputFloats(s);
}

// Calls visit(tile) for the tiles of one image, made in `scratch` (TileFloats).
template <typename Visit>
void ForEachTile(const ConvPoolShape& s, const float* image, bool filter, float* scratch,
                 const Visit& visit) {
  ConvPoolTile tile{scratch, scratch + ConvPoolTileFloats(s), 0, 0};
  for (; tile.first < s.pooled_y; tile.first += tile.rows) {
    tile.rows = std::min(s.tile_rows, s.pooled_y - tile.first);
    FillConvPoolTile(s, image, tile, filter);
    visit(tile);
  }
}

class ConvPoolKernel : public HostKernel<ConvPoolKernel> {
 public:
  ConvPoolKernel(const OpCall& call, int threads)
      : shape_(ShapeOf(call, WeightDims(call))), batch_(call.inputs[0].dims[0]), threads_(threads) {
    const int64_t groups = CeilDiv(shape_.outputs, kConvPoolGroup);
    if (batch_ < kFewImages * threads) slices_ = std::min<int64_t>(threads, groups);
  }

  static int64_t PartFloats(const ConvPoolShape& s) {
    return TileFloats(s) + RoundUpFloats(ConvPoolPackedFloats(s));
  }

  Status Run(const KernelBuffers& b) {
    const auto* w = static_cast<const float*>(b.inputs[1]);
    const auto* bias = b.inputs.size() > 2 ? static_cast<const float*>(b.inputs[2]) : nullptr;
    ForEachPart(threads_, [&](int part) {
      float* scratch = static_cast<float*>(b.workspace) + part * PartFloats(shape_);
      float* packed = scratch + TileFloats(shape_);
      const Range items = PartOf(batch_ * slices_, threads_, part);
      if (items.begin < items.end) PackConvPoolWeights(shape_, w, bias, packed);
      for (int64_t i = items.begin; i < items.end; ++i) RunItem(b, i, packed, scratch);
    });
    return Status();
  }

 private:
  // One slice of the output channels of one image.
  void RunItem(const KernelBuffers& b, int64_t item, const float* packed, float* scratch) const {
    const ConvPoolShape& s = shape_;
    const int64_t image = item / slices_, plane = image * s.outputs * s.windows();
    const Range outputs = PartOf(s.outputs, static_cast<int>(slices_),
                                 static_cast<int>(item % slices_), kConvPoolGroup);
    ForEachTile(s, static_cast<const float*>(b.inputs[0]) + image * s.image(), s.filters(), scratch,
                [&](const ConvPoolTile& tile) {
                  ConvPoolForward(
                      s, tile, packed,
                      {static_cast<float*>(b.outputs[0]) + plane,
                       static_cast<uint8_t*>(b.outputs[1]) + plane, outputs.begin, outputs.end});
                });
  }

  const ConvPoolShape shape_;
  const int64_t batch_;
  const int threads_;
  int64_t slices_ = 1;
};

class ConvPoolGradWeightKernel : public HostKernel<ConvPoolGradWeightKernel> {
 public:
  ConvPoolGradWeightKernel(const OpCall& call, int threads)
      : shape_(ShapeOf(call, WeightDims(call))),
        batch_(call.inputs[0].dims[0]),
        threads_(threads) {}

  static int64_t PartFloats(const ConvPoolShape& s) { return TileFloats(s) + ConvPoolSumFloats(s); }

  Status Run(const KernelBuffers& b) {
    ForEachPart(threads_, [&](int part) {
      float* sums = static_cast<float*>(b.workspace) + part * PartFloats(shape_);
      std::fill_n(sums, ConvPoolSumFloats(shape_), 0.0F);
      const Range images = PartOf(batch_, threads_, part);
      for (int64_t i = images.begin; i < images.end; ++i)
        AddImage(b, i, sums, sums + ConvPoolSumFloats(shape_));
    });
    AddParts(b);
    return Status();
  }

 private:
  void AddImage(const KernelBuffers& b, int64_t image, float* sums, float* scratch) const {
    const int64_t plane = image * shape_.outputs * shape_.windows();
    ForEachTile(shape_, static_cast<const float*>(b.inputs[0]) + image * shape_.image(),
                /*filter=*/false, scratch, [&](const ConvPoolTile& tile) {
                  ConvPoolGradient(shape_, tile, static_cast<const uint8_t*>(b.inputs[1]) + plane,
                                   static_cast<const float*>(b.inputs[2]) + plane, sums);
                });
  }

  void AddParts(const KernelBuffers& b) const {
    const int64_t taps = shape_.taps();
    auto* dw = static_cast<float*>(b.outputs[0]);
    auto* dbias = b.outputs.size() > 1 ? static_cast<float*>(b.outputs[1]) : nullptr;
    for (int64_t i = 0; i < shape_.outputs * (taps + 1); ++i) {
      const float sum = SumOf(static_cast<const float*>(b.workspace) + i * 16);
      const int64_t o = i / (taps + 1), t = i % (taps + 1);
      if (t < taps) {
        dw[o * taps + t] = sum;
      } else if (dbias != nullptr) {
        dbias[o] = sum;
      }
    }
  }

  // 16 lanes of each part, lane by lane in order of the part, then by halves.
  float SumOf(const float* first) const {
    float lanes[16] = {};
    for (int part = 0; part < threads_; ++part) {
      for (int64_t k = 0; k < 16; ++k) lanes[k] += first[part * PartFloats(shape_) + k];
    }
    for (int half = 8; half > 0; half /= 2) {
      for (int k = 0; k < half; ++k) lanes[k] += lanes[k + half];
    }
    return lanes[0];
  }

  const ConvPoolShape shape_;
  const int64_t batch_;
  const int threads_;
};

const char* Refuse(const CandidateQuery& q) {
  const ConvPoolShape shape = ShapeOf(q.call, WeightDims(q.call));
  return shape.kernel_x > kMostKernel ? refusal::kAttribute : nullptr;
}

// With so few products per result, writing and reading the results costs more than computing them.
bool IsThin(const OpCall& call) {
  constexpr int64_t kMostTaps = 100;  // C * KH * KW: four channels of 5x5
  const TensorType& w = call.inputs[1];
  return w.dtype == DType::kF32 && w.dims[2] <= kMostKernel && w.dims[3] <= kMostKernel &&
         w.dims[1] * w.dims[2] * w.dims[3] <= kMostTaps;
}

template <typename K>
int64_t WorkspaceBytes(const CandidateQuery& q) {
  return q.threads() * K::PartFloats(ShapeOf(q.call, WeightDims(q.call))) * 4;
}

template <typename K>
KernelDef DefOf(const char* op, double efficiency) {
  return {.name = "cpu.{op}",
          .ops = {op},
          .dtypes = {DType::kF32},
          .refuse = Refuse,
          .efficiency = efficiency,
          .workspace_bytes = WorkspaceBytes<K>,
          .make = MakeKernel<K>};
}

}  // namespace

// Of the rate of convolutions, by steps of `cnn` on two cores of Zen 4 and of Zen 5: 0.43 on both,
// and 0.33 and 0.15, where few pixels of the pool's windows have a gradient.
KernelDef ConvPoolKernelDef() {
  KernelDef def = DefOf<ConvPoolKernel>("conv_pool", 0.43);
  def.fuses = IsThin;
  return def;
}
KernelDef ConvPoolGradWeightKernelDef() {
  return DefOf<ConvPoolGradWeightKernel>("conv_pool_grad_weight", 0.2);
}

}  // namespace ridge::cpu

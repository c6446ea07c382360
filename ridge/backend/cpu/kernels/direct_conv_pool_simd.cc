// Lanes are windows, and a few output channels are made together: an input of the tile is loaded
// once for all of them, and weights are read as broadcasts.  Everything of a window stays in
// registers until its maximum is known.
//
// Kernels of three columns take 4 products for two places instead of 6.  The transformed weights
// are halves of sums, so the error stays that of a direct sum within a factor of two.
//
// One core of a Zen 4 (118 GFLOP/s), direct products counted: f32[1,28,28] by [32,1,3,3] 79
// GFLOP/s (direct: 74), [3,32,32] by [32,3,3,3] 114 (93), [3,64,64] by [16,3,5,5], direct, 83.
// What is left at one channel is the search for the winner: 14 of 47 cycles.
#include <algorithm>
#include <cstring>

#include "ridge/backend/cpu/kernels/direct_conv_pool.h"
#include "ridge/core/rounding.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/direct_conv_pool_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {

using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;
using DB = hn::Rebind<uint8_t, D>;

// Accumulators of four places for each channel, within the registers of the target.
constexpr int kChannels = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

// The largest of a window: a0, a1 above a2, a3.
struct Winner {
  V y;
  VI place;
};

// NaN beats every number and the first of them wins, so: from the last to the first, by >= or NaN.
HWY_INLINE Winner WinnerWithNan(V a0, V a1, V a2, V a3) {
  Winner best{a3, hn::Set(DI(), 3)};
  const auto meet = [&](V a, int place) HWY_ATTR {
    const auto wins = hn::Or(hn::Ge(a, best.y), hn::IsNaN(a));
    best.y = hn::IfThenElse(wins, a, best.y);
    best.place = hn::IfThenElse(hn::RebindMask(DI(), wins), hn::Set(DI(), place), best.place);
  };
  meet(a2, 2);
  meet(a1, 1);
  meet(a0, 0);
  return best;
}

// Rows first, then the larger of the two, by >: the first of equals wins.
// REQUIRES: no NaN.
HWY_INLINE Winner WinnerOf(V a0, V a1, V a2, V a3) {
  const DI di;
  const V upper = hn::Max(a0, a1), lower = hn::Max(a2, a3);
  const VI upper_place = hn::IfThenElseZero(hn::RebindMask(di, hn::Gt(a1, a0)), hn::Set(di, 1));
  const VI lower_place =
      hn::IfThenElse(hn::RebindMask(di, hn::Gt(a3, a2)), hn::Set(di, 3), hn::Set(di, 2));
  const auto below = hn::RebindMask(di, hn::Gt(lower, upper));
  return {hn::Max(upper, lower), hn::IfThenElse(below, lower_place, upper_place)};
}

// NaN stays, and passes no gradient.
HWY_INLINE Winner Rectify(const Winner& w, bool nan) {
  const D d;
  const auto alive = hn::Gt(w.y, hn::Zero(d));
  const auto keep = nan ? hn::Or(alive, hn::IsNaN(w.y)) : alive;
  return {hn::IfThenElseZero(keep, w.y),
          hn::IfThenElse(hn::RebindMask(DI(), alive), w.place, hn::Set(DI(), 4))};
}

// `count` lanes; writes nothing behind them.
HWY_INLINE void StoreWinner(const Winner& w, size_t count, float* y, uint8_t* place) {
  const D d;
  const auto bytes = hn::TruncateTo(DB(), hn::BitCast(hn::RebindToUnsigned<DI>(), w.place));
  if (HWY_LIKELY(count == hn::Lanes(d))) {
    hn::StoreU(w.y, d, y);
    hn::StoreU(bytes, DB(), place);
    return;
  }
  alignas(16) uint8_t few[16];
  hn::Store(bytes, DB(), few);
  CopyFew(few, count, place);
  StoreFirst(w.y, y, count);
}

// Where the channels of a group are written.
struct Outputs {
  float* y;
  uint8_t* place;
  int64_t plane;     // from one channel to the next
  int64_t channels;  // that there are; others are padding
};

// Without NaN and without padding channels or lanes; kRelu is the shape's.
template <bool kRelu, int kCount>
HWY_INLINE void FinishWhole(const V (&windows)[kCount][4], const Outputs& out) {
#pragma GCC unroll 4
  for (int k = 0; k < kCount; ++k) {
    const V* w = windows[k];
    Winner winner = WinnerOf(w[0], w[1], w[2], w[3]);
    if (kRelu) winner = Rectify(winner, /*nan=*/false);
    StoreWinner(winner, hn::Lanes(D()), out.y + k * out.plane, out.place + k * out.plane);
  }
}

template <int kCount>
HWY_INLINE void Finish(const ConvPoolShape& s, const V (&windows)[kCount][4], size_t count,
                       const Outputs& out) {
  const D d;
  V sum = hn::Zero(d);  // NaN when one of them is
#pragma GCC unroll 4
  for (int k = 0; k < kCount; ++k) {
    const V* w = windows[k];
    sum = hn::Add(sum, hn::Add(hn::Add(w[0], w[1]), hn::Add(w[2], w[3])));
  }
  const bool nan = !hn::AllFalse(d, hn::IsNaN(sum));
  if (HWY_LIKELY(!nan && count == hn::Lanes(d) && out.channels >= kCount)) {
    if (s.relu) return FinishWhole<true>(windows, out);
    return FinishWhole<false>(windows, out);
  }
#pragma GCC unroll 4
  for (int k = 0; k < kCount; ++k) {
    if (k >= out.channels) break;
    const V* w = windows[k];
    Winner winner = WinnerWithNan(w[0], w[1], w[2], w[3]);
    if (s.relu) winner = Rectify(winner, nan);
    StoreWinner(winner, count, out.y + k * out.plane, out.place + k * out.plane);
  }
}

// `count` windows from `at` on, of kChannels channels; packed [1 + taps, kConvPoolGroup].
HWY_INLINE void DirectWindows(const ConvPoolShape& s, const float* at, const float* packed,
                              size_t count, const Outputs& out) {
  const D d;
  V acc[kChannels][4];
#pragma GCC unroll 4
  for (int k = 0; k < kChannels; ++k) {
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) acc[k][p] = hn::Set(d, packed[k]);
  }
  const int64_t stride = s.tile_stride(), patch_row = s.patch_width() * stride;
  for (int64_t c = 0; c < s.channels; ++c) {
    for (int64_t ky = 0; ky < s.kernel_y; ++ky) {
      const float* row = at + (c * (s.kernel_y + 1) + ky) * patch_row;
      for (int64_t kx = 0; kx < s.kernel_x; ++kx, row += stride) {
        packed += kConvPoolGroup;
        const V x0 = hn::LoadU(d, row), x1 = hn::LoadU(d, row + stride),
                x2 = hn::LoadU(d, row + patch_row), x3 = hn::LoadU(d, row + patch_row + stride);
#pragma GCC unroll 4
        for (int k = 0; k < kChannels; ++k) {
          const V w = hn::Set(d, packed[k]);
          acc[k][0] = hn::MulAdd(x0, w, acc[k][0]);
          acc[k][1] = hn::MulAdd(x1, w, acc[k][1]);
          acc[k][2] = hn::MulAdd(x2, w, acc[k][2]);
          acc[k][3] = hn::MulAdd(x3, w, acc[k][3]);
        }
      }
    }
  }
  Finish<kChannels>(s, acc, count, out);
}

// The two places of a row of the window.
HWY_INLINE void Unfilter(const V (&m)[4], V* places) {
  places[0] = hn::Add(hn::Add(m[0], m[1]), m[2]);
  places[1] = hn::Sub(hn::Sub(m[1], m[2]), m[3]);
}

// The same of a tile and weights that are filtered, of kChannels / 2 channels: each has four
// accumulators for either row of the window.
HWY_INLINE void FilteredWindows(const ConvPoolShape& s, const float* at, const float* packed,
                                size_t count, const Outputs& out) {
  constexpr int kHalf = kChannels / 2;
  const D d;
  V upper[kHalf][4], lower[kHalf][4];
#pragma GCC unroll 2
  for (int k = 0; k < kHalf; ++k) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) upper[k][j] = lower[k][j] = hn::Zero(d);
    upper[k][1] = lower[k][1] = hn::Set(d, packed[k]);
  }
  const int64_t stride = s.tile_stride();
  for (int64_t c = 0; c < s.channels; ++c) {
    V row[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j, at += stride) row[j] = hn::LoadU(d, at);
    for (int64_t ky = 0; ky < s.kernel_y; ++ky) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j, at += stride) {
        packed += kConvPoolGroup;
        const V next = hn::LoadU(d, at);
#pragma GCC unroll 2
        for (int k = 0; k < kHalf; ++k) {
          const V w = hn::Set(d, packed[k]);
          upper[k][j] = hn::MulAdd(row[j], w, upper[k][j]);
          lower[k][j] = hn::MulAdd(next, w, lower[k][j]);
        }
        row[j] = next;
      }
    }
  }
  V windows[kHalf][4];
#pragma GCC unroll 2
  for (int k = 0; k < kHalf; ++k) {
    Unfilter(upper[k], windows[k]);
    Unfilter(lower[k], windows[k] + 2);
  }
  Finish<kHalf>(s, windows, count, out);
}

// Calls run(windows, packed, count, outputs) for the tile's vectors of windows, kStep output
// channels at a time.
template <int kStep, class Run>
HWY_INLINE void ForEachGroup(const ConvPoolShape& s, const ConvPoolTile& tile, const float* packed,
                             const ConvPoolResults& to, const Run& run) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t windows = tile.rows * s.pooled_x;
  for (int64_t o = to.begin; o < to.end; o += kStep) {
    const float* own =
        packed + o / kConvPoolGroup * (s.packed_taps() + 1) * kConvPoolGroup + o % kConvPoolGroup;
    int64_t at = o * s.windows() + tile.first * s.pooled_x;
    for (int64_t i = 0; i < windows; i += lanes, at += lanes) {
      run(tile.data + i, own, static_cast<size_t>(std::min(lanes, windows - i)),
          Outputs{to.y + at, to.place + at, s.windows(), to.end - o});
    }
  }
}

void Forward(const ConvPoolShape& s, const ConvPoolTile& tile, const float* packed,
             const ConvPoolResults& to) {
  if (!s.filters()) {
    ForEachGroup<kChannels>(s, tile, packed, to,
                            [&](const float* at, const float* own, size_t count, const Outputs& out)
                                HWY_ATTR { DirectWindows(s, at, own, count, out); });
  } else {
    ForEachGroup<kChannels / 2>(
        s, tile, packed, to,
        [&](const float* at, const float* own, size_t count, const Outputs& out)
            HWY_ATTR { FilteredWindows(s, at, own, count, out); });
  }
}

// Two rows of the tile at a time: the inputs of even and of odd columns.
void Spread(const ConvPoolShape& s, const ConvPoolTile& tile) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = s.tile_stride(), count = tile.rows * s.pooled_x;
  const int64_t rounded = RoundUpFloats(count);
  float* to = tile.data;
  for (int64_t c = 0; c < s.channels; ++c) {
    const float* plane = tile.inputs + c * s.tile_inputs(tile.rows) * s.padded_width;
    for (int64_t dy = 0; dy <= s.kernel_y; ++dy) {
      for (int64_t dx = 0; dx <= s.kernel_x; dx += 2, to += 2 * stride) {
        for (int64_t r = 0; r < tile.rows; ++r) {
          const float* from = plane + (2 * r + dy) * s.padded_width + dx;
          for (int64_t i = 0; i < s.pooled_x; i += lanes) {
            V even, odd;
            hn::LoadInterleaved2(d, from + 2 * i, even, odd);
            hn::StoreU(even, d, to + r * s.pooled_x + i);
            hn::StoreU(odd, d, to + stride + r * s.pooled_x + i);
          }
        }
        // Lanes without a window: whatever is there would be multiplied by 0, but for NaN.
        std::fill(to + count, to + rounded, 0.0F);
        std::fill(to + stride + count, to + stride + rounded, 0.0F);
      }
    }
  }
}

// x0 to x3 of each row of the patch become x0 - x2, x1 + x2, x2 - x1, x1 - x3.
void Filter(const ConvPoolShape& s, const ConvPoolTile& tile) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = s.tile_stride(), count = tile.rows * s.pooled_x;
  for (int64_t r = 0; r < s.channels * (s.kernel_y + 1); ++r) {
    float* row = tile.data + r * 4 * stride;
    for (int64_t i = 0; i < count; i += lanes) {
      const V x0 = hn::LoadU(d, row + i), x1 = hn::LoadU(d, row + stride + i),
              x2 = hn::LoadU(d, row + 2 * stride + i), x3 = hn::LoadU(d, row + 3 * stride + i);
      hn::StoreU(hn::Sub(x0, x2), d, row + i);
      hn::StoreU(hn::Add(x1, x2), d, row + stride + i);
      hn::StoreU(hn::Sub(x2, x1), d, row + 2 * stride + i);
      hn::StoreU(hn::Sub(x1, x3), d, row + 3 * stride + i);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {
namespace {

HWY_EXPORT(Forward);
HWY_EXPORT(Spread);
HWY_EXPORT(Filter);

constexpr int64_t kOverread = 48;  // floats that an interleaved load may read behind a row

}  // namespace

int64_t ConvPoolTileFloats(const ConvPoolShape& shape) {
  return shape.patch_rows() * shape.tile_stride();
}

int64_t ConvPoolInputFloats(const ConvPoolShape& shape) {
  const int64_t rows = shape.channels * shape.tile_inputs(shape.tile_rows);
  return RoundUpFloats(rows * shape.padded_width + kOverread);
}

void FillConvPoolTile(const ConvPoolShape& s, const float* image, const ConvPoolTile& tile,
                      bool filter) {
  const int64_t rows = s.tile_inputs(tile.rows), top = 2 * tile.first - s.pad_top;
  float* to = tile.inputs;
  for (int64_t c = 0; c < s.channels; ++c) {
    for (int64_t r = 0; r < rows; ++r, to += s.padded_width) {
      const int64_t from = top + r;
      const bool inside = from >= 0 && from < s.height;
      if (!inside || s.width < s.padded_width) std::fill_n(to, s.padded_width, 0.0F);
      if (!inside) continue;
      std::memcpy(to + s.pad_left, image + (c * s.height + from) * s.width,
                  static_cast<size_t>(s.width) * sizeof(float));
    }
  }
  std::fill_n(to, kOverread, 0.0F);
  HWY_DYNAMIC_DISPATCH(Spread)(s, tile);
  if (filter) HWY_DYNAMIC_DISPATCH(Filter)(s, tile);
}

int64_t ConvPoolPackedFloats(const ConvPoolShape& shape) {
  const int64_t groups = CeilDiv(shape.outputs, kConvPoolGroup);
  return groups * (shape.packed_taps() + 1) * kConvPoolGroup;
}

namespace {

// Number t of a packed output channel, whose weights are w.
float PackedTap(const ConvPoolShape& shape, const float* w, int64_t t) {
  if (!shape.filters()) return w[t];
  const float* row = w + t / 4 * 3;
  if (t % 4 == 0) return row[0];
  if (t % 4 == 3) return row[2];
  const float ends = row[0] + row[2];
  return 0.5F * (t % 4 == 1 ? ends + row[1] : ends - row[1]);
}

}  // namespace

void PackConvPoolWeights(const ConvPoolShape& shape, const float* w, const float* bias,
                         float* packed) {
  for (int64_t first = 0; first < shape.outputs; first += kConvPoolGroup) {
    for (int64_t t = -1; t < shape.packed_taps(); ++t) {
      for (int64_t o = first; o < first + kConvPoolGroup; ++o) {
        float value = 0;
        if (o < shape.outputs && t >= 0) value = PackedTap(shape, w + o * shape.taps(), t);
        if (o < shape.outputs && t < 0 && bias != nullptr) value = bias[o];
        *packed++ = value;
      }
    }
  }
}

void ConvPoolForward(const ConvPoolShape& shape, const ConvPoolTile& tile, const float* packed,
                     const ConvPoolResults& to) {
  HWY_DYNAMIC_DISPATCH(Forward)(shape, tile, packed, to);
}

}  // namespace ridge::cpu
#endif

// Lanes are windows, and a few output channels are made together: an input of the tile is loaded
// once for all of them, and weights are read as broadcasts.  Everything of a window stays in
// registers until its maximum is known.
//
// On one core of a Zen 4, f32[64,1,28,28] by [32,1,3,3]: forward 100 GFLOP/s of 118, where 81 of
// 100 lanes of a row-wise kernel would be used.
#include <algorithm>
#include <cstring>

#include "ridge/backend/cpu/kernels/simd_targets.h"
#include "ridge/backend/cpu/kernels/thin_conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/thin_conv_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;
using DB = hn::Rebind<uint8_t, D>;

// Accumulators of four places for each channel, within the registers of the target.
constexpr int kChannels = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

// The largest of a window: a[0], a[1] above a[2], a[3].
struct Winner {
  V y;
  VI place;
};

// NaN beats every number and the first of them wins, so: from the last to the first, by >= or NaN.
HWY_NOINLINE Winner WinnerWithNan(const V* a) {
  Winner best{a[3], hn::Set(DI(), 3)};
  for (int k = 3; k-- > 0;) {
    const auto wins = hn::Or(hn::Ge(a[k], best.y), hn::IsNaN(a[k]));
    best.y = hn::IfThenElse(wins, a[k], best.y);
    best.place = hn::IfThenElse(hn::RebindMask(DI(), wins), hn::Set(DI(), k), best.place);
  }
  return best;
}

// Rows first, then the larger of the two, by >: the first of equals wins.
HWY_INLINE Winner FindWinner(const V a0, const V a1, const V a2, const V a3) {
  const D d;
  const DI di;
  const V sum = hn::Add(hn::Add(a0, a1), hn::Add(a2, a3));  // NaN when one is
  if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(sum)))) {
    const V a[4] = {a0, a1, a2, a3};
    return WinnerWithNan(a);
  }
  const V upper = hn::Max(a0, a1), lower = hn::Max(a2, a3);
  const VI upper_place = hn::IfThenElseZero(hn::RebindMask(di, hn::Gt(a1, a0)), hn::Set(di, 1));
  const VI lower_place =
      hn::IfThenElse(hn::RebindMask(di, hn::Gt(a3, a2)), hn::Set(di, 3), hn::Set(di, 2));
  const auto below = hn::RebindMask(di, hn::Gt(lower, upper));
  return {hn::Max(upper, lower), hn::IfThenElse(below, lower_place, upper_place)};
}

HWY_INLINE Winner Rectify(const Winner& w) {
  const D d;
  const auto alive = hn::RebindMask(DI(), hn::Gt(w.y, hn::Zero(d)));
  const auto cut = hn::Le(w.y, hn::Zero(d));  // not of NaN, which stays
  return {hn::IfThenElse(cut, hn::Zero(d), w.y), hn::IfThenElse(alive, w.place, hn::Set(DI(), 4))};
}

// `count` lanes.
HWY_INLINE void StoreWinner(const Winner& w, size_t count, float* y, uint8_t* place) {
  const D d;
  const auto bytes = hn::TruncateTo(DB(), hn::BitCast(hn::RebindToUnsigned<DI>(), w.place));
  if (HWY_LIKELY(count == hn::Lanes(d))) {
    hn::StoreU(w.y, d, y);
    hn::StoreU(bytes, DB(), place);
    return;
  }
  alignas(64) float values[16];
  alignas(64) uint8_t places[16];
  hn::Store(w.y, d, values);
  hn::Store(bytes, DB(), places);
  std::memcpy(y, values, count * sizeof(float));
  std::memcpy(place, places, count);
}

// Where the channels of a group are written.
struct Outputs {
  float* y;
  uint8_t* place;
  int64_t plane;     // from one channel to the next
  int64_t channels;  // that there are; others are padding
};

// `count` windows from `at` on, of kChannels channels; packed [taps + 1, kThinGroup].
HWY_INLINE void GroupWindows(const ThinConvShape& s, const float* at, int64_t stride,
                             const float* packed, size_t count, const Outputs& out) {
  const D d;
  V acc[kChannels][4];
#pragma GCC unroll 4
  for (int k = 0; k < kChannels; ++k) {
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) acc[k][p] = hn::Set(d, packed[k]);
  }
  const int64_t patch_row = s.patch_width() * stride;
  for (int64_t c = 0; c < s.channels; ++c) {
    for (int64_t ky = 0; ky < s.kernel_y; ++ky) {
      const float* row = at + (c * (s.kernel_y + 1) + ky) * patch_row;
      for (int64_t kx = 0; kx < s.kernel_x; ++kx, row += stride) {
        packed += kThinGroup;
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
#pragma GCC unroll 4
  for (int k = 0; k < kChannels; ++k) {
    if (k >= out.channels) break;
    Winner winner = FindWinner(acc[k][0], acc[k][1], acc[k][2], acc[k][3]);
    if (s.relu) winner = Rectify(winner);
    StoreWinner(winner, count, out.y + k * out.plane, out.place + k * out.plane);
  }
}

void Forward(const ThinConvShape& s, const ThinTile& tile, const float* packed, int64_t begin,
             int64_t end, float* y, uint8_t* place) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t count = tile.rows * s.pooled_x, stride = s.tile_stride();
  for (int64_t o = begin; o < end; o += kChannels) {
    const float* own = packed + o / kThinGroup * (s.taps() + 1) * kThinGroup + o % kThinGroup;
    for (int64_t i = 0; i < count; i += lanes) {
      const int64_t at = o * s.windows() + tile.first * s.pooled_x + i;
      GroupWindows(s, tile.data + i, stride, own, static_cast<size_t>(std::min(lanes, count - i)),
                   {y + at, place + at, s.windows(), end - o});
    }
  }
}

// Two rows of the tile at a time: the inputs of even and of odd columns.
void Spread(const ThinConvShape& s, const ThinTile& tile) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = s.tile_stride(), count = tile.rows * s.pooled_x;
  const int64_t rounded = (count + 15) / 16 * 16;
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

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {
namespace {

HWY_EXPORT(Forward);
HWY_EXPORT(Spread);

constexpr int64_t kOverread = 48;  // floats that an interleaved load may read behind a row

}  // namespace

int64_t ThinTileFloats(const ThinConvShape& shape) {
  return shape.patch_rows() * shape.tile_stride();
}

int64_t ThinInputFloats(const ThinConvShape& shape) {
  const int64_t rows = shape.channels * shape.tile_inputs(shape.tile_rows);
  return (rows * shape.padded_width + kOverread + 15) / 16 * 16;
}

void FillThinTile(const ThinConvShape& s, const float* image, const ThinTile& tile) {
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
}

int64_t ThinPackedFloats(const ThinConvShape& shape) {
  const int64_t groups = (shape.outputs + kThinGroup - 1) / kThinGroup;
  return groups * (shape.taps() + 1) * kThinGroup;
}

void PackThinWeights(const ThinConvShape& shape, const float* w, const float* bias, float* packed) {
  const int64_t taps = shape.taps();
  for (int64_t first = 0; first < shape.outputs; first += kThinGroup) {
    for (int64_t t = -1; t < taps; ++t) {
      for (int64_t o = first; o < first + kThinGroup; ++o) {
        float value = 0;
        if (o < shape.outputs) value = t >= 0 ? w[o * taps + t] : bias != nullptr ? bias[o] : 0;
        *packed++ = value;
      }
    }
  }
}

void ThinConvForward(const ThinConvShape& shape, const ThinTile& tile, const float* packed,
                     int64_t begin, int64_t end, float* y, uint8_t* place) {
  HWY_DYNAMIC_DISPATCH(Forward)(shape, tile, packed, begin, end, y, place);
}

}  // namespace ridge::cpu
#endif

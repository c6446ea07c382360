// Each dy meets only the inputs that its winner saw.  Lanes are windows, so which of the four
// places won differs from lane to lane: the inputs of a tap are chosen by blending the two rows,
// then the two columns, of the patch.  That is 21 blends and 9 multiply-adds for a 3x3 kernel,
// where dy spread over all places would need 36 multiply-adds.  Two output channels at a time (with
// 32 registers) share the loads: one core of a Zen 4, f32[32,1,28,28] by [32,1,3,3]: 0.124 -> 0.106
// ms.
#include <algorithm>

#include "ridge/backend/cpu/kernels/direct_conv_pool.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/direct_conv_pool_grad_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {

using DI = hn::RebindToSigned<D>;
using DB = hn::Rebind<uint8_t, D>;
using M = hn::Mask<D>;

constexpr int64_t kSumLanes = 16;
// Output channels that share the loads of the tile, within the registers of the target.
constexpr int kPair = HWY_TARGET <= HWY_AVX3 ? 2 : 1;

// dy of one vector of windows, 0 where the winner was cut off, and where the winner was.
struct Sent {
  V dy;
  M lower, right;
};

HWY_INLINE Sent MakeSent(hn::Vec<DI> winner, V dy) {
  const D d;
  const DI di;
  const auto alive = hn::RebindMask(d, hn::Lt(winner, hn::Set(di, 4)));
  return {hn::IfThenElseZero(alive, dy), hn::RebindMask(d, hn::TestBit(winner, hn::Set(di, 2))),
          hn::RebindMask(d, hn::TestBit(winner, hn::Set(di, 1)))};
}
HWY_INLINE Sent LoadSent(const uint8_t* place, const float* dy) {
  return MakeSent(hn::PromoteTo(DI(), hn::LoadU(DB(), place)), hn::LoadU(D(), dy));
}
HWY_INLINE Sent LoadSent(const uint8_t* place, const float* dy, size_t count) {
  alignas(16) uint8_t few[16] = {};
  CopyFew(place, count, few);
  return MakeSent(hn::PromoteTo(DI(), hn::Load(DB(), few)), LoadFirst(dy, count));
}

// Planes of output channels, and where their sums are.
struct Channels {
  const uint8_t* place;
  const float* dy;
  int64_t plane;  // from one channel to the next
  float* sums;
  int64_t sums_step;  // likewise
  float* bias_sums;   // nullptr: not wanted
};

// Sums in registers: of some rows of taps of some output channels and one input channel.
template <int kRows, int kColumns, int kOutputs>
struct Sums {
  V taps[kOutputs][kRows][kColumns];
  V bias[kOutputs];
};

// One vector of windows; `x` is what they see in the first of the kRows + 1 patch rows.
template <int kRows, int kColumns, int kOutputs>
HWY_INLINE void AddWindows(const float* x, int64_t stride, int64_t patch_row,
                           const Sent (&sent)[kOutputs], Sums<kRows, kColumns, kOutputs>& sums) {
  const D d;
  V left[kOutputs][kRows];
#pragma GCC unroll 2
  for (int o = 0; o < kOutputs; ++o) sums.bias[o] = hn::Add(sums.bias[o], sent[o].dy);
#pragma GCC unroll 6
  for (int k = 0; k <= kColumns; ++k) {
    V column[kRows + 1];
#pragma GCC unroll 6
    for (int r = 0; r <= kRows; ++r) column[r] = hn::LoadU(d, x + r * patch_row + k * stride);
#pragma GCC unroll 2
    for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 5
      for (int r = 0; r < kRows; ++r) {
        const V right = hn::IfThenElse(sent[o].lower, column[r + 1], column[r]);
        if (k > 0) {
          V& sum = sums.taps[o][r][k - 1];
          sum = hn::MulAdd(hn::IfThenElse(sent[o].right, right, left[o][r]), sent[o].dy, sum);
        }
        left[o][r] = right;
      }
    }
  }
}

// Calls f(place in memory, sum) for all sums.
template <int kRows, int kColumns, int kOutputs, class F>
HWY_INLINE void ForEachSum(const Channels& channels, Sums<kRows, kColumns, kOutputs>& sums,
                           const F& f) {
#pragma GCC unroll 2
  for (int o = 0; o < kOutputs; ++o) {
    float* at = channels.sums + o * channels.sums_step;
#pragma GCC unroll 5
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 5
      for (int k = 0; k < kColumns; ++k) f(at + (r * kColumns + k) * kSumLanes, sums.taps[o][r][k]);
    }
    if (channels.bias_sums != nullptr) f(channels.bias_sums + o * channels.sums_step, sums.bias[o]);
  }
}

// `x` is the first patch row that the kRows rows of taps see.
template <int kRows, int kColumns, int kOutputs>
void AddTaps(const ConvPoolShape& s, const float* x, int64_t count, const Channels& channels) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = s.tile_stride(), patch_row = s.patch_width() * stride;
  Sums<kRows, kColumns, kOutputs> sums;
#pragma GCC unroll 2
  for (int o = 0; o < kOutputs; ++o) sums.bias[o] = hn::Zero(d);
  ForEachSum(channels, sums, [&](const float* at, V& sum) HWY_ATTR { sum = hn::LoadU(d, at); });
  Sent sent[kOutputs];
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
#pragma GCC unroll 2
    for (int o = 0; o < kOutputs; ++o) {
      const int64_t at = o * channels.plane + i;
      sent[o] = LoadSent(channels.place + at, channels.dy + at);
    }
    AddWindows(x + i, stride, patch_row, sent, sums);
  }
  if (i < count) {
#pragma GCC unroll 2
    for (int o = 0; o < kOutputs; ++o) {
      const int64_t at = o * channels.plane + i;
      sent[o] = LoadSent(channels.place + at, channels.dy + at, static_cast<size_t>(count - i));
    }
    AddWindows(x + i, stride, patch_row, sent, sums);
  }
  ForEachSum(channels, sums, [&](float* at, V& sum) HWY_ATTR { hn::StoreU(sum, d, at); });
}

using AddTapsFn = void (*)(const ConvPoolShape&, const float*, int64_t, const Channels&);

// All taps of kOutputs output channels.
template <int kOutputs>
void AddAllTaps(const ConvPoolShape& s, const ConvPoolTile& tile, Channels channels) {
  static constexpr AddTapsFn kOne[] = {AddTaps<1, 1, kOutputs>, AddTaps<1, 2, kOutputs>,
                                       AddTaps<1, 3, kOutputs>, AddTaps<1, 4, kOutputs>,
                                       AddTaps<1, 5, kOutputs>};
  const bool square = s.kernel_y == 3 && s.kernel_x == 3;
  const AddTapsFn add = square ? AddTaps<3, 3, kOutputs> : kOne[s.kernel_x - 1];
  const int64_t rows = square ? 3 : 1, patch_row = s.patch_width() * s.tile_stride();
  const int64_t count = tile.rows * s.pooled_x;
  for (int64_t c = 0; c < s.channels; ++c) {
    const float* x = tile.data + c * (s.kernel_y + 1) * patch_row;
    for (int64_t ky = 0; ky < s.kernel_y; ky += rows) {
      add(s, x + ky * patch_row, count, channels);
      channels.sums += rows * s.kernel_x * kSumLanes;
      channels.bias_sums = nullptr;
    }
  }
}

void Gradient(const ConvPoolShape& s, const ConvPoolTile& tile, const uint8_t* place,
              const float* dy, float* sums) {
  const int64_t step = (s.taps() + 1) * kSumLanes, first = tile.first * s.pooled_x;
  for (int64_t o = 0; o < s.outputs;) {
    const int64_t at = o * s.windows() + first;
    float* own = sums + o * step;
    const Channels channels{place + at, dy + at, s.windows(),
                            own,        step,    own + s.taps() * kSumLanes};
    if (o + kPair <= s.outputs) {
      AddAllTaps<kPair>(s, tile, channels);
      o += kPair;
    } else {
      AddAllTaps<1>(s, tile, channels);
      ++o;
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

HWY_EXPORT(Gradient);

}  // namespace

void ConvPoolGradient(const ConvPoolShape& shape, const ConvPoolTile& tile, const uint8_t* place,
                      const float* dy, float* sums) {
  HWY_DYNAMIC_DISPATCH(Gradient)(shape, tile, place, dy, sums);
}

}  // namespace ridge::cpu
#endif

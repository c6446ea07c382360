// Each dy meets only the inputs that its winner saw.  Lanes are windows, so which of the four
// places won differs from lane to lane: the inputs of a tap are chosen by blending the two rows,
// then the two columns, of the patch.  That is 21 blends and 9 multiply-adds for a 3x3 kernel,
// where dy spread over all places would need 36 multiply-adds.
#include <algorithm>
#include <cstring>

#include "ridge/backend/cpu/kernels/simd_targets.h"
#include "ridge/backend/cpu/kernels/thin_conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/thin_conv_grad_simd.cc"
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
using DB = hn::Rebind<uint8_t, D>;
using M = hn::Mask<D>;

constexpr int64_t kSumLanes = 16;

// dy of one vector of windows, 0 where the winner was cut off, and where the winner was.
struct Sent {
  V dy;
  M lower, right;
};

HWY_INLINE Sent LoadSent(const uint8_t* place, const float* dy, size_t count) {
  const D d;
  const DI di;
  alignas(64) float values[16];
  alignas(64) uint8_t places[16];
  if (HWY_UNLIKELY(count < hn::Lanes(d))) {
    hn::Store(hn::Zero(d), d, values);
    std::memset(places, 4, sizeof(places));
    std::memcpy(values, dy, count * sizeof(float));
    std::memcpy(places, place, count);
    dy = values;
    place = places;
  }
  const auto winner = hn::PromoteTo(di, hn::LoadU(DB(), place));
  const auto alive = hn::RebindMask(d, hn::Lt(winner, hn::Set(di, 4)));
  return {hn::IfThenElseZero(alive, hn::LoadU(d, dy)),
          hn::RebindMask(d, hn::TestBit(winner, hn::Set(di, 2))),
          hn::RebindMask(d, hn::TestBit(winner, hn::Set(di, 1)))};
}

// The sums of kRows rows of taps of one output channel and one input channel; `x` is the first of
// the kRows + 1 patch rows that they see.
template <int kRows, int kColumns>
void AddTaps(const ThinConvShape& s, const float* x, int64_t count, const uint8_t* place,
             const float* dy, float* sums) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = s.tile_stride(), patch_row = s.patch_width() * stride;
  V acc[kRows][kColumns];
#pragma GCC unroll 5
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 5
    for (int k = 0; k < kColumns; ++k)
      acc[r][k] = hn::LoadU(d, sums + (r * kColumns + k) * kSumLanes);
  }
  for (int64_t i = 0; i < count; i += lanes) {
    const Sent sent = LoadSent(place + i, dy + i, static_cast<size_t>(std::min(lanes, count - i)));
#pragma GCC unroll 5
    for (int r = 0; r < kRows; ++r) {
      const float* upper = x + r * patch_row + i;
      V left = hn::IfThenElse(sent.lower, hn::LoadU(d, upper + patch_row), hn::LoadU(d, upper));
#pragma GCC unroll 5
      for (int k = 0; k < kColumns; ++k) {
        upper += stride;
        const V right =
            hn::IfThenElse(sent.lower, hn::LoadU(d, upper + patch_row), hn::LoadU(d, upper));
        acc[r][k] = hn::MulAdd(hn::IfThenElse(sent.right, right, left), sent.dy, acc[r][k]);
        left = right;
      }
    }
  }
#pragma GCC unroll 5
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 5
    for (int k = 0; k < kColumns; ++k)
      hn::StoreU(acc[r][k], d, sums + (r * kColumns + k) * kSumLanes);
  }
}

void AddBias(int64_t count, const uint8_t* place, const float* dy, float* sum) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V acc = hn::LoadU(d, sum);
  for (int64_t i = 0; i < count; i += lanes) {
    const auto some = static_cast<size_t>(std::min(lanes, count - i));
    acc = hn::Add(acc, LoadSent(place + i, dy + i, some).dy);
  }
  hn::StoreU(acc, d, sum);
}

using AddTapsFn = void (*)(const ThinConvShape&, const float*, int64_t, const uint8_t*,
                           const float*, float*);

void Gradient(const ThinConvShape& s, const ThinTile& tile, const uint8_t* place, const float* dy,
              float* sums) {
  static constexpr AddTapsFn kRowOf[] = {AddTaps<1, 1>, AddTaps<1, 2>, AddTaps<1, 3>, AddTaps<1, 4>,
                                         AddTaps<1, 5>};
  const bool square = s.kernel_y == 3 && s.kernel_x == 3;
  const AddTapsFn add = square ? AddTaps<3, 3> : kRowOf[s.kernel_x - 1];
  const int64_t rows = square ? 3 : 1, patch_row = s.patch_width() * s.tile_stride();
  const int64_t count = tile.rows * s.pooled_x;
  for (int64_t o = 0; o < s.outputs; ++o) {
    const int64_t at = o * s.windows() + tile.first * s.pooled_x;
    for (int64_t c = 0; c < s.channels; ++c) {
      const float* x = tile.data + c * (s.kernel_y + 1) * patch_row;
      for (int64_t ky = 0; ky < s.kernel_y; ky += rows) {
        add(s, x + ky * patch_row, count, place + at, dy + at, sums);
        sums += rows * s.kernel_x * kSumLanes;
      }
    }
    AddBias(count, place + at, dy + at, sums);
    sums += kSumLanes;
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

void ThinConvGradient(const ThinConvShape& shape, const ThinTile& tile, const uint8_t* place,
                      const float* dy, float* sums) {
  HWY_DYNAMIC_DISPATCH(Gradient)(shape, tile, place, dy, sums);
}

}  // namespace ridge::cpu
#endif

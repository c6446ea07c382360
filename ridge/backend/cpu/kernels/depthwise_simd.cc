// One row of taps after the other, its sums in registers over the whole image.  Two outputs are
// taken at a time, each with sums of its own: three taps are fewer than an addition's latency.
#include <algorithm>

#include "ridge/backend/cpu/kernels/depthwise_rows.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/depthwise_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, and a block of channels is a multiple of them.
using D = hn::CappedTag<float, 8>;
using DWide = hn::CappedTag<float, 16>;

// Taps [first, first + kTaps) of row ky, channels [0, Lanes(d)).
template <size_t kTaps, class Tag>
HWY_INLINE void AddTaps(Tag d, const DepthwiseShape& s, int64_t ky, int64_t first, const float* x,
                        const float* dy, float* dw) {
  using V = hn::Vec<Tag>;
  V even[kTaps], odd[kTaps];
  for (size_t k = 0; k < kTaps; ++k) even[k] = odd[k] = hn::Zero(d);
  const int64_t tap_step = s.x.dilation * s.block, step = s.x.stride * s.block;
  const OutputRange rows = s.y.OutputsOfTap(ky);
  for (int64_t oy = rows.first; oy < rows.last; ++oy) {
    const float* row = x + s.y.InputAt(oy, ky) * s.row_elements + first * tap_step;
    const float* grad = dy + oy * s.x.output * s.block;
    int64_t ox = 0;
    for (; ox + 2 <= s.x.output; ox += 2, row += 2 * step, grad += 2 * s.block) {
      const V g0 = hn::LoadU(d, grad), g1 = hn::LoadU(d, grad + s.block);
      for (size_t k = 0; k < kTaps; ++k) {
        const float* at = row + static_cast<int64_t>(k) * tap_step;
        even[k] = hn::MulAdd(g0, hn::LoadU(d, at), even[k]);
        odd[k] = hn::MulAdd(g1, hn::LoadU(d, at + step), odd[k]);
      }
    }
    if (ox == s.x.output) continue;
    const V g = hn::LoadU(d, grad);
    for (size_t k = 0; k < kTaps; ++k) {
      even[k] = hn::MulAdd(g, hn::LoadU(d, row + static_cast<int64_t>(k) * tap_step), even[k]);
    }
  }
  for (size_t k = 0; k < kTaps; ++k) {
    float* to = dw + (ky * s.x.kernel + first + static_cast<int64_t>(k)) * s.block;
    hn::StoreU(hn::Add(hn::LoadU(d, to), hn::Add(even[k], odd[k])), d, to);
  }
}

template <class Tag>
HWY_INLINE void AddRowOfTaps(Tag d, const DepthwiseShape& s, int64_t ky, const float* x,
                             const float* dy, float* dw) {
  int64_t k = 0;
  for (; s.x.kernel - k >= 7; k += 7) AddTaps<7>(d, s, ky, k, x, dy, dw);
  for (; s.x.kernel - k >= 5; k += 5) AddTaps<5>(d, s, ky, k, x, dy, dw);
  for (; s.x.kernel - k >= 3; k += 3) AddTaps<3>(d, s, ky, k, x, dy, dw);
  for (; k < s.x.kernel; ++k) AddTaps<1>(d, s, ky, k, x, dy, dw);
}

template <class Tag>
HWY_INLINE void AddOutputs(Tag d, const DepthwiseShape& s, const float* dy, float* dbias) {
  auto sum = hn::Zero(d);
  for (int64_t o = 0; o < s.y.output * s.x.output; ++o)
    sum = hn::Add(sum, hn::LoadU(d, dy + o * s.block));
  hn::StoreU(hn::Add(hn::LoadU(d, dbias), sum), d, dbias);
}

template <class Tag>
HWY_INLINE void AddChannels(Tag d, const DepthwiseShape& s, const float* x, const float* dy,
                            float* dw, float* dbias) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < s.block; c += lanes) {
    for (int64_t ky = 0; ky < s.y.kernel; ++ky) AddRowOfTaps(d, s, ky, x + c, dy + c, dw + c);
    if (dbias != nullptr) AddOutputs(d, s, dy + c, dbias + c);
  }
}

void AddGradWeight(const DepthwiseShape& s, const float* x, const float* dy, float* dw,
                   float* dbias) {
  if (s.block % 16 == 0) return AddChannels(DWide(), s, x, dy, dw, dbias);
  AddChannels(D(), s, x, dy, dw, dbias);
}

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(AddGradWeight);

void AddDepthwiseGradWeight(const DepthwiseShape& shape, const float* x, const float* dy, float* dw,
                            float* dbias) {
  HWY_DYNAMIC_DISPATCH(AddGradWeight)(shape, x, dy, dw, dbias);
}

}  // namespace ridge::cpu
#endif

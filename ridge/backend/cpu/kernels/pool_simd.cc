// Backward rows are gathered: each dx sums the windows that hold it, so every dx is written once,
// in one order, whatever the overlap.
#include <cmath>
#include <limits>

#include "ridge/backend/cpu/kernels/pool_rows.h"
#include "ridge/backend/cpu/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/pool_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using DI = hn::RebindToSigned<D>;
using DB = hn::Rebind<uint8_t, D>;

HWY_INLINE void MaxOfWindow(const PoolShape& s, const float* x, int64_t oy, int64_t ox, float* y,
                            uint8_t* index) {
  const D d;
  const TapRange rows = TapsInside(s.y, oy), columns = TapsInside(s.x, ox);
  V best = hn::Set(d, -std::numeric_limits<float>::infinity());
  V winner = hn::Zero(d);
  bool first = true;
  for (int64_t ky = rows.first; ky < rows.last; ++ky) {
    const float* row = x + s.y.InputAt(oy, ky) * s.x.input * s.lanes;
    for (int64_t kx = columns.first; kx < columns.last; ++kx) {
      const V v = hn::LoadU(d, row + s.x.InputAt(ox, kx) * s.lanes);
      const V tap = hn::Set(d, static_cast<float>(ky * s.x.kernel + kx));
      const auto wins = hn::Or(hn::Gt(v, best), hn::AndNot(hn::IsNaN(best), hn::IsNaN(v)));
      best = first ? v : hn::IfThenElse(wins, v, best);
      winner = first ? tap : hn::IfThenElse(wins, tap, winner);
      first = false;
    }
  }
  hn::StoreU(best, d, y);
  hn::StoreU(hn::DemoteTo(DB(), hn::ConvertTo(DI(), winner)), DB(), index);
}

void MaxRow(const PoolShape& s, const float* x, int64_t oy, float* y, uint8_t* index) {
  const auto step = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t ox = 0; ox < s.x.output; ++ox) {
    for (int64_t lane = 0; lane < s.lanes; lane += step) {
      const int64_t at = ox * s.lanes + lane;
      MaxOfWindow(s, x + lane, oy, ox, y + at, index + at);
    }
  }
}

HWY_INLINE V GradOfMax(const PoolShape& s, const uint8_t* index, const float* dy, int64_t iy,
                       int64_t ix, int64_t lane) {
  const D d;
  V sum = hn::Zero(d);
  ForEachWindow(s.y, iy, [&](int64_t oy, int64_t ky) HWY_ATTR {
    ForEachWindow(s.x, ix, [&](int64_t ox, int64_t kx) HWY_ATTR {
      const int64_t at = (oy * s.x.output + ox) * s.lanes + lane;
      const auto winner = hn::PromoteTo(DI(), hn::LoadU(DB(), index + at));
      const auto tap = hn::Set(DI(), static_cast<int32_t>(ky * s.x.kernel + kx));
      const auto mine = hn::RebindMask(d, hn::Eq(winner, tap));
      sum = hn::Add(sum, hn::IfThenElseZero(mine, hn::LoadU(d, dy + at)));
    });
  });
  return sum;
}

void MaxGradRow(const PoolShape& s, const uint8_t* index, const float* dy, int64_t iy, float* dx) {
  const auto step = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t ix = 0; ix < s.x.input; ++ix) {
    for (int64_t lane = 0; lane < s.lanes; lane += step)
      hn::StoreU(GradOfMax(s, index, dy, iy, ix, lane), D(), dx + ix * s.lanes + lane);
  }
}

void AvgRow(const PoolShape& s, const float* divisors, const float* x, int64_t oy, float* y) {
  const D d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const TapRange rows = TapsInside(s.y, oy);
  for (int64_t ox = 0; ox < s.x.output; ++ox) {
    const TapRange columns = TapsInside(s.x, ox);
    const V divisor = hn::Set(d, divisors[oy * s.x.output + ox]);
    for (int64_t lane = 0; lane < s.lanes; lane += step) {
      V sum = hn::Zero(d);
      for (int64_t ky = rows.first; ky < rows.last; ++ky) {
        const float* row = x + s.y.InputAt(oy, ky) * s.x.input * s.lanes + lane;
        for (int64_t kx = columns.first; kx < columns.last; ++kx)
          sum = hn::Add(sum, hn::LoadU(d, row + s.x.InputAt(ox, kx) * s.lanes));
      }
      hn::StoreU(hn::Div(sum, divisor), d, y + ox * s.lanes + lane);
    }
  }
}

void AvgGradRow(const PoolShape& s, const float* divisors, const float* dy, int64_t iy, float* dx) {
  const D d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t ix = 0; ix < s.x.input; ++ix) {
    for (int64_t lane = 0; lane < s.lanes; lane += step) {
      V sum = hn::Zero(d);
      ForEachWindow(s.y, iy, [&](int64_t oy, int64_t) HWY_ATTR {
        ForEachWindow(s.x, ix, [&](int64_t ox, int64_t) HWY_ATTR {
          const int64_t o = oy * s.x.output + ox;
          sum =
              hn::Add(sum, hn::Div(hn::LoadU(d, dy + o * s.lanes + lane), hn::Set(d, divisors[o])));
        });
      });
      hn::StoreU(sum, d, dx + ix * s.lanes + lane);
    }
  }
}

size_t VectorLanes() { return hn::Lanes(D()); }

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {
namespace {

HWY_EXPORT(MaxRow);
HWY_EXPORT(MaxGradRow);
HWY_EXPORT(AvgRow);
HWY_EXPORT(AvgGradRow);
HWY_EXPORT(VectorLanes);

bool FillsVectors(const PoolShape& s) {
  return s.lanes % static_cast<int64_t>(HWY_DYNAMIC_DISPATCH(VectorLanes)()) == 0;
}

template <typename Index>
void MaxRowScalar(const PoolShape& s, const float* x, int64_t oy, float* y, Index* index) {
  const TapRange rows = TapsInside(s.y, oy);
  for (int64_t at = 0; at < s.x.output * s.lanes; ++at) {
    const int64_t ox = at / s.lanes, lane = at % s.lanes;
    const TapRange columns = TapsInside(s.x, ox);
    float best = -std::numeric_limits<float>::infinity();
    int64_t winner = -1;
    for (int64_t ky = rows.first; ky < rows.last; ++ky) {
      for (int64_t kx = columns.first; kx < columns.last; ++kx) {
        const float v = x[(s.y.InputAt(oy, ky) * s.x.input + s.x.InputAt(ox, kx)) * s.lanes + lane];
        if (winner >= 0 && !(v > best) && !(std::isnan(v) && !std::isnan(best))) continue;
        best = v;
        winner = ky * s.x.kernel + kx;
      }
    }
    y[at] = best;
    index[at] = static_cast<Index>(winner < 0 ? 0 : winner);
  }
}

template <typename Index>
void MaxGradRowScalar(const PoolShape& s, const Index* index, const float* dy, int64_t iy,
                      float* dx) {
  for (int64_t at = 0; at < s.x.input * s.lanes; ++at) {
    const int64_t ix = at / s.lanes, lane = at % s.lanes;
    float sum = 0;
    ForEachWindow(s.y, iy, [&](int64_t oy, int64_t ky) {
      ForEachWindow(s.x, ix, [&](int64_t ox, int64_t kx) {
        const int64_t o = (oy * s.x.output + ox) * s.lanes + lane;
        if (index[o] == ky * s.x.kernel + kx) sum += dy[o];
      });
    });
    dx[at] = sum;
  }
}

void AvgRowScalar(const PoolShape& s, const float* divisors, const float* x, int64_t oy, float* y) {
  const TapRange rows = TapsInside(s.y, oy);
  for (int64_t at = 0; at < s.x.output * s.lanes; ++at) {
    const int64_t ox = at / s.lanes, lane = at % s.lanes;
    const TapRange columns = TapsInside(s.x, ox);
    float sum = 0;
    for (int64_t ky = rows.first; ky < rows.last; ++ky) {
      for (int64_t kx = columns.first; kx < columns.last; ++kx)
        sum += x[(s.y.InputAt(oy, ky) * s.x.input + s.x.InputAt(ox, kx)) * s.lanes + lane];
    }
    y[at] = sum / divisors[oy * s.x.output + ox];
  }
}

void AvgGradRowScalar(const PoolShape& s, const float* divisors, const float* dy, int64_t iy,
                      float* dx) {
  for (int64_t at = 0; at < s.x.input * s.lanes; ++at) {
    const int64_t ix = at / s.lanes, lane = at % s.lanes;
    float sum = 0;
    ForEachWindow(s.y, iy, [&](int64_t oy, int64_t) {
      ForEachWindow(s.x, ix, [&](int64_t ox, int64_t) {
        const int64_t o = oy * s.x.output + ox;
        sum += dy[o * s.lanes + lane] / divisors[o];
      });
    });
    dx[at] = sum;
  }
}

}  // namespace

void MaxPoolRow(const PoolShape& shape, const float* x, int64_t oy, float* y, void* index) {
  if (shape.wide_index) return MaxRowScalar(shape, x, oy, y, static_cast<int32_t*>(index));
  auto* bytes = static_cast<uint8_t*>(index);
  if (!FillsVectors(shape)) return MaxRowScalar(shape, x, oy, y, bytes);
  HWY_DYNAMIC_DISPATCH(MaxRow)(shape, x, oy, y, bytes);
}

void MaxPoolGradRow(const PoolShape& shape, const void* index, const float* dy, int64_t iy,
                    float* dx) {
  if (shape.wide_index)
    return MaxGradRowScalar(shape, static_cast<const int32_t*>(index), dy, iy, dx);
  const auto* bytes = static_cast<const uint8_t*>(index);
  if (!FillsVectors(shape)) return MaxGradRowScalar(shape, bytes, dy, iy, dx);
  HWY_DYNAMIC_DISPATCH(MaxGradRow)(shape, bytes, dy, iy, dx);
}

void AvgPoolRow(const PoolShape& shape, const float* divisors, const float* x, int64_t oy,
                float* y) {
  if (!FillsVectors(shape)) return AvgRowScalar(shape, divisors, x, oy, y);
  HWY_DYNAMIC_DISPATCH(AvgRow)(shape, divisors, x, oy, y);
}

void AvgPoolGradRow(const PoolShape& shape, const float* divisors, const float* dy, int64_t iy,
                    float* dx) {
  if (!FillsVectors(shape)) return AvgGradRowScalar(shape, divisors, dy, iy, dx);
  HWY_DYNAMIC_DISPATCH(AvgGradRow)(shape, divisors, dy, iy, dx);
}

}  // namespace ridge::cpu
#endif

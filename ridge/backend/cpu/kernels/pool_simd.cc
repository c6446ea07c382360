// Backward rows are gathered: each dx sums the windows that hold it, so every dx is written once,
// in one order, whatever the overlap.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/backend/cpu/kernels/pool_rows.h"
#include "ridge/core/simd_targets.h"

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

HWY_INLINE void StoreTaps(hn::Vec<DI> taps, uint8_t* index) {
  const hn::RebindToUnsigned<DI> unsigned_lanes;
  hn::StoreU(hn::TruncateTo(DB(), hn::BitCast(unsigned_lanes, taps)), DB(), index);
}

// From the last tap to the first, so that the first of equals wins; a NaN is taken, and no number
// is larger or equal.  -inf to begin with: a window of -inf ends at its first tap too.
HWY_INLINE void MaxOfWindow(const PoolShape& s, const float* x, TapRange rows, TapRange columns,
                            int64_t first_column, float* y, uint8_t* index) {
  const D d;
  const WindowAxis& wx = s.x.axis;
  V best = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto winner = hn::Zero(DI());
  for (int64_t ky = rows.last; ky-- > rows.first;) {
    const float* row = x + (ky - rows.first) * s.y.axis.dilation * s.input_row();
    for (int64_t kx = columns.last; kx-- > columns.first;) {
      const V v = hn::LoadU(d, row + (first_column + kx * wx.dilation) * s.lanes);
      const auto tap = hn::Set(DI(), static_cast<int32_t>(ky * wx.kernel + kx));
      const auto wins = hn::Or(hn::Ge(v, best), hn::IsNaN(v));
      best = hn::IfThenElse(wins, v, best);
      winner = hn::IfThenElse(hn::RebindMask(DI(), wins), tap, winner);
    }
  }
  hn::StoreU(best, d, y);
  StoreTaps(winner, index);
}

// A whole window, unrolled.
template <int64_t kHeight, int64_t kWidth>
HWY_INLINE void MaxOfWholeWindow(const PoolShape& s, const float* x, float* y, uint8_t* index) {
  const D d;
  V best = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto winner = hn::Zero(DI());
  for (int64_t tap = kHeight * kWidth; tap-- > 0;) {
    const V v = hn::LoadU(d, x + tap / kWidth * s.input_row() + tap % kWidth * s.lanes);
    const auto wins = hn::Or(hn::Ge(v, best), hn::IsNaN(v));
    best = hn::IfThenElse(wins, v, best);
    winner = hn::IfThenElse(hn::RebindMask(DI(), wins), hn::Set(DI(), static_cast<int32_t>(tap)),
                            winner);
  }
  hn::StoreU(best, d, y);
  StoreTaps(winner, index);
}

// Outputs of one row whose windows are whole; true when there is unrolled code for this kernel.
template <int64_t kHeight, int64_t kWidth>
bool WholeWindows(const PoolShape& s, const float* row, TapRange outputs, float* y,
                  uint8_t* index) {
  if (s.y.axis.kernel != kHeight || s.x.axis.kernel != kWidth) return false;
  const auto step = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t ox = outputs.first; ox < outputs.last; ++ox) {
    const float* x = row + s.x.axis.InputAt(ox, 0) * s.lanes;
    for (int64_t lane = 0; lane < s.lanes; lane += step) {
      const int64_t at = ox * s.lanes + lane;
      MaxOfWholeWindow<kHeight, kWidth>(s, x + lane, y + at, index + at);
    }
  }
  return true;
}

void MaxColumns(const PoolShape& s, const float* top, TapRange rows, TapRange outputs, float* y,
                uint8_t* index) {
  const auto step = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t ox = outputs.first; ox < outputs.last; ++ox) {
    const TapRange columns = s.x.taps[static_cast<size_t>(ox)];
    for (int64_t lane = 0; lane < s.lanes; lane += step) {
      const int64_t at = ox * s.lanes + lane;
      MaxOfWindow(s, top + lane, rows, columns, s.x.axis.InputAt(ox, 0), y + at, index + at);
    }
  }
}

void MaxRow(const PoolShape& s, const float* x, int64_t oy, float* y, uint8_t* index) {
  const TapRange rows = s.y.taps[static_cast<size_t>(oy)];
  const float* top = x + s.y.axis.InputAt(oy, rows.first) * s.input_row();
  TapRange whole = s.x.whole;
  const bool dense = s.y.axis.dilation == 1 && s.x.axis.dilation == 1;
  if (!dense || rows.first != 0 || rows.last != s.y.axis.kernel) whole.last = whole.first;
  if (!WholeWindows<2, 2>(s, top, whole, y, index) && !WholeWindows<3, 3>(s, top, whole, y, index))
    whole.last = whole.first;
  MaxColumns(s, top, rows, {0, whole.first}, y, index);
  MaxColumns(s, top, rows, {whole.last, s.x.axis.output}, y, index);
}

HWY_INLINE V GradOfMax(const PoolShape& s, const uint8_t* index, const float* dy,
                       std::span<const Window> rows, std::span<const Window> columns) {
  const D d;
  V sum = hn::Zero(d);
  for (const Window& row : rows) {
    for (const Window& column : columns) {
      const int64_t at = row.output * s.output_row() + column.output * s.lanes;
      const auto winner = hn::PromoteTo(DI(), hn::LoadU(DB(), index + at));
      const auto tap = hn::Set(DI(), static_cast<int32_t>(row.tap * s.x.axis.kernel + column.tap));
      const auto mine = hn::RebindMask(d, hn::Eq(winner, tap));
      sum = hn::Add(sum, hn::IfThenElseZero(mine, hn::LoadU(d, dy + at)));
    }
  }
  return sum;
}

// Windows that touch without overlap: each (index, dy) is read once for its row of taps.
void MaxGradDisjointRow(const PoolShape& s, const uint8_t* index, const float* dy, Window row,
                        float* dx) {
  const D d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const int64_t kernel = s.x.axis.kernel;
  for (int64_t ox = 0; ox < s.x.axis.output; ++ox) {
    for (int64_t lane = 0; lane < s.lanes; lane += step) {
      const int64_t at = row.output * s.output_row() + ox * s.lanes + lane;
      const auto winner = hn::PromoteTo(DI(), hn::LoadU(DB(), index + at));
      const V g = hn::LoadU(d, dy + at);
      for (int64_t kx = 0; kx < kernel; ++kx) {
        const auto tap = hn::Set(DI(), static_cast<int32_t>(row.tap * kernel + kx));
        hn::StoreU(hn::IfThenElseZero(hn::RebindMask(d, hn::Eq(winner, tap)), g), d,
                   dx + (ox * kernel + kx) * s.lanes + lane);
      }
    }
  }
  std::fill(dx + s.x.axis.output * kernel * s.lanes, dx + s.input_row(), 0.0F);
}

void MaxGradRow(const PoolShape& s, const uint8_t* index, const float* dy, int64_t iy, float* dx) {
  const auto step = static_cast<int64_t>(hn::Lanes(D()));
  const std::span<const Window> rows = s.y.WindowsOf(iy);
  if (s.x.disjoint && rows.size() == 1) return MaxGradDisjointRow(s, index, dy, rows[0], dx);
  for (int64_t ix = 0; ix < s.x.axis.input; ++ix) {
    const std::span<const Window> columns = s.x.WindowsOf(ix);
    for (int64_t lane = 0; lane < s.lanes; lane += step) {
      hn::StoreU(GradOfMax(s, index + lane, dy + lane, rows, columns), D(),
                 dx + ix * s.lanes + lane);
    }
  }
}

HWY_INLINE V SumOfWindow(const PoolShape& s, const float* x, int64_t oy, int64_t ox) {
  const D d;
  const TapRange rows = s.y.taps[static_cast<size_t>(oy)];
  const TapRange columns = s.x.taps[static_cast<size_t>(ox)];
  V sum = hn::Zero(d);
  for (int64_t ky = rows.first; ky < rows.last; ++ky) {
    const float* row = x + s.y.axis.InputAt(oy, ky) * s.input_row();
    for (int64_t kx = columns.first; kx < columns.last; ++kx)
      sum = hn::Add(sum, hn::LoadU(d, row + s.x.axis.InputAt(ox, kx) * s.lanes));
  }
  return sum;
}

void AvgRow(const PoolShape& s, const float* divisors, const float* x, int64_t oy, float* y) {
  const D d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t ox = 0; ox < s.x.axis.output; ++ox) {
    const V divisor = hn::Set(d, divisors[oy * s.x.axis.output + ox]);
    for (int64_t lane = 0; lane < s.lanes; lane += step)
      hn::StoreU(hn::Div(SumOfWindow(s, x + lane, oy, ox), divisor), d, y + ox * s.lanes + lane);
  }
}

HWY_INLINE V GradOfAvg(const PoolShape& s, const float* divisors, const float* dy,
                       std::span<const Window> rows, std::span<const Window> columns) {
  const D d;
  V sum = hn::Zero(d);
  for (const Window& row : rows) {
    for (const Window& column : columns) {
      const int64_t o = row.output * s.x.axis.output + column.output;
      sum = hn::Add(sum, hn::Div(hn::LoadU(d, dy + o * s.lanes), hn::Set(d, divisors[o])));
    }
  }
  return sum;
}

void AvgGradRow(const PoolShape& s, const float* divisors, const float* dy, int64_t iy, float* dx) {
  const auto step = static_cast<int64_t>(hn::Lanes(D()));
  const std::span<const Window> rows = s.y.WindowsOf(iy);
  for (int64_t ix = 0; ix < s.x.axis.input; ++ix) {
    const std::span<const Window> columns = s.x.WindowsOf(ix);
    for (int64_t lane = 0; lane < s.lanes; lane += step) {
      hn::StoreU(GradOfAvg(s, divisors, dy + lane, rows, columns), D(), dx + ix * s.lanes + lane);
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

// Calls f(offset in the plane, tap number) for the taps of one output inside the input.
template <typename F>
void ForEachTap(const PoolShape& s, int64_t oy, int64_t ox, const F& f) {
  const TapRange rows = s.y.taps[static_cast<size_t>(oy)];
  const TapRange columns = s.x.taps[static_cast<size_t>(ox)];
  for (int64_t ky = rows.first; ky < rows.last; ++ky) {
    for (int64_t kx = columns.first; kx < columns.last; ++kx) {
      f(s.y.axis.InputAt(oy, ky) * s.input_row() + s.x.axis.InputAt(ox, kx) * s.lanes,
        ky * s.x.axis.kernel + kx);
    }
  }
}

// Calls f(output, tap number) for the windows that hold one input position.
template <typename F>
void ForEachWindow(const PoolShape& s, int64_t iy, int64_t ix, const F& f) {
  for (const Window& row : s.y.WindowsOf(iy)) {
    for (const Window& column : s.x.WindowsOf(ix))
      f(row.output * s.x.axis.output + column.output, row.tap * s.x.axis.kernel + column.tap);
  }
}

template <typename Index>
void MaxRowScalar(const PoolShape& s, const float* x, int64_t oy, float* y, Index* index) {
  for (int64_t at = 0; at < s.output_row(); ++at) {
    float best = -std::numeric_limits<float>::infinity();
    int64_t winner = -1;
    ForEachTap(s, oy, at / s.lanes, [&](int64_t offset, int64_t tap) {
      const float v = x[offset + at % s.lanes];
      if (winner >= 0 && !(v > best) && !(std::isnan(v) && !std::isnan(best))) return;
      best = v;
      winner = tap;
    });
    y[at] = best;
    index[at] = static_cast<Index>(winner < 0 ? 0 : winner);
  }
}

template <typename Index>
void MaxGradRowScalar(const PoolShape& s, const Index* index, const float* dy, int64_t iy,
                      float* dx) {
  for (int64_t at = 0; at < s.input_row(); ++at) {
    float sum = 0;
    ForEachWindow(s, iy, at / s.lanes, [&](int64_t output, int64_t tap) {
      const int64_t o = output * s.lanes + at % s.lanes;
      if (index[o] == tap) sum += dy[o];
    });
    dx[at] = sum;
  }
}

void AvgRowScalar(const PoolShape& s, const float* divisors, const float* x, int64_t oy, float* y) {
  for (int64_t at = 0; at < s.output_row(); ++at) {
    float sum = 0;
    ForEachTap(s, oy, at / s.lanes,
               [&](int64_t offset, int64_t) { sum += x[offset + at % s.lanes]; });
    y[at] = sum / divisors[oy * s.x.axis.output + at / s.lanes];
  }
}

void AvgGradRowScalar(const PoolShape& s, const float* divisors, const float* dy, int64_t iy,
                      float* dx) {
  for (int64_t at = 0; at < s.input_row(); ++at) {
    float sum = 0;
    ForEachWindow(s, iy, at / s.lanes, [&](int64_t output, int64_t) {
      sum += dy[output * s.lanes + at % s.lanes] / divisors[output];
    });
    dx[at] = sum;
  }
}

TapRange TapsInside(const WindowAxis& axis, int64_t o) {
  TapRange range{axis.kernel, 0};
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    if (!axis.Inside(axis.InputAt(o, tap))) continue;
    range.first = std::min(range.first, tap);
    range.last = tap + 1;
  }
  if (range.first >= range.last) return {0, 0};
  return range;
}

}  // namespace

PoolAxis::PoolAxis(const WindowAxis& window) : axis(window) {
  for (int64_t o = 0; o < axis.output; ++o) {
    taps.push_back(TapsInside(axis, o));
    has_empty_window |= taps.back().first == taps.back().last;
  }
  const auto is_whole = [&](TapRange t) { return t.first == 0 && t.last == axis.kernel; };
  while (whole.first < axis.output && !is_whole(taps[static_cast<size_t>(whole.first)]))
    ++whole.first;
  whole.last = whole.first;
  while (whole.last < axis.output && is_whole(taps[static_cast<size_t>(whole.last)])) ++whole.last;
  disjoint = axis.stride == axis.kernel && axis.dilation == 1 && axis.pad_begin == 0 &&
             axis.output * axis.kernel <= axis.input;
  // A later output starts further on, so for one position the output grows as the tap shrinks.
  for (int64_t i = 0; i < axis.input; ++i) {
    window_begin.push_back(windows.size());
    for (int64_t tap = axis.kernel; tap-- > 0;) {
      const int64_t from = i + axis.pad_begin - tap * axis.dilation;
      if (from >= 0 && from % axis.stride == 0 && from / axis.stride < axis.output)
        windows.push_back({from / axis.stride, tap});
    }
  }
  window_begin.push_back(windows.size());
}

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

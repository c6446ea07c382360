#include <cmath>
#include <cstring>
#include <limits>

#include "ridge/backend/cpu/kernels/reduce_runs.h"
#include "ridge/core/dtype.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/reduce_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/lanes-inl.h"
#include "ridge/backend/cpu/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {

struct Sum {
  HWY_INLINE V operator()(V a, V b) const { return hn::Add(a, b); }
  float operator()(float a, float b) const { return a + b; }
  static float start() { return 0; }
};
// Once NaN, always NaN: the comparison with a NaN on either side keeps or takes it.
struct Max {
  HWY_INLINE V operator()(V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
  }
  float operator()(float a, float b) const { return b > a || std::isnan(b) ? b : a; }
  static float start() { return -std::numeric_limits<float>::infinity(); }
};
struct Min {
  HWY_INLINE V operator()(V a, V b) const {
    return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
  }
  float operator()(float a, float b) const { return b < a || std::isnan(b) ? b : a; }
  static float start() { return std::numeric_limits<float>::infinity(); }
};

HWY_INLINE float ToFloat(float x) { return x; }
HWY_INLINE float ToFloat(uint16_t x) { return BF16ToFloat(x); }

template <class Op>
HWY_INLINE float AcrossLanes(V v, Op op) {
  alignas(64) float lanes[16];
  hn::Store(v, D(), lanes);
  float result = lanes[0];
  for (size_t i = 1; i < hn::Lanes(D()); ++i) result = op(result, lanes[i]);
  return result;
}

// At most kBlock elements, in four registers.
template <typename T, class Op>
float ReduceBlock(const T* x, size_t count, Op op) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V a0 = hn::Set(d, Op::start()), a1 = a0, a2 = a0, a3 = a0;
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    a0 = op(a0, LoadFloats(x + i));
    a1 = op(a1, LoadFloats(x + i + lanes));
    a2 = op(a2, LoadFloats(x + i + 2 * lanes));
    a3 = op(a3, LoadFloats(x + i + 3 * lanes));
  }
  for (; i + lanes <= count; i += lanes) a0 = op(a0, LoadFloats(x + i));
  float result = AcrossLanes(op(op(a0, a1), op(a2, a3)), op);
  for (; i < count; ++i) result = op(result, ToFloat(x[i]));
  return result;
}

constexpr size_t kBlock = 4096;

template <typename T, class Op>
double ReduceAll(const T* x, size_t count, Op op, Reduction kind) {
  double result = ReductionStart(kind);
  for (size_t i = 0; i < count; i += kBlock)
    result = Combine(kind, result, ReduceBlock(x + i, HWY_MIN(kBlock, count - i), op));
  return result;
}

template <typename T>
double RunOf(Reduction kind, const T* x, int64_t count) {
  const auto n = static_cast<size_t>(count);
  if (kind == Reduction::kSum) return ReduceAll(x, n, Sum(), kind);
  if (kind == Reduction::kMax) return ReduceAll(x, n, Max(), kind);
  return ReduceAll(x, n, Min(), kind);
}

double Run(Reduction kind, const float* x, int64_t count) { return RunOf(kind, x, count); }
double RunBF16(Reduction kind, const uint16_t* x, int64_t count) { return RunOf(kind, x, count); }

// Rows that are read side by side, each from its beginning to its end: as many streams as the
// prefetchers follow.
constexpr int64_t kRowBlock = 8;

// Columns [c, columns) of kRowBlock rows, added up in pairs and then to acc.
template <typename T, class Op>
void DownBlock(const T* x, int64_t stride, size_t columns, float* acc, Op op) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t c = 0;
  for (; c + lanes <= columns; c += lanes) {
    const T* at = x + c;
    const auto pair = [&](int64_t r) HWY_ATTR {
      return op(LoadFloats(at + r * stride), LoadFloats(at + (r + 1) * stride));
    };
    const V all = op(op(pair(0), pair(2)), op(pair(4), pair(6)));
    hn::StoreU(op(hn::LoadU(d, acc + c), all), d, acc + c);
  }
  for (; c < columns; ++c) {
    float result = Op::start();
    for (int64_t r = 0; r < kRowBlock; ++r)
      result = op(result, ToFloat(x[r * stride + static_cast<int64_t>(c)]));
    acc[c] = op(acc[c], result);
  }
}

template <typename T, class Op>
void DownRow(const T* x, size_t columns, float* acc, Op op) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t c = 0;
  for (; c + lanes <= columns; c += lanes)
    hn::StoreU(op(hn::LoadU(d, acc + c), LoadFloats(x + c)), d, acc + c);
  for (; c < columns; ++c) acc[c] = op(acc[c], ToFloat(x[c]));
}

template <typename T, class Op>
void DownAll(const T* x, int64_t stride, int64_t rows, int64_t columns, float* acc, Op op) {
  const auto width = static_cast<size_t>(columns);
  int64_t r = 0;
  for (; r + kRowBlock <= rows; r += kRowBlock) DownBlock(x + r * stride, stride, width, acc, op);
  for (; r < rows; ++r) DownRow(x + r * stride, width, acc, op);
}

template <typename T>
void RowsOf(Reduction kind, const T* x, int64_t stride, int64_t rows, int64_t columns, float* acc) {
  if (kind == Reduction::kSum) return DownAll(x, stride, rows, columns, acc, Sum());
  if (kind == Reduction::kMax) return DownAll(x, stride, rows, columns, acc, Max());
  DownAll(x, stride, rows, columns, acc, Min());
}

void Rows(Reduction kind, const float* x, int64_t stride, int64_t rows, int64_t columns,
          float* acc) {
  RowsOf(kind, x, stride, rows, columns, acc);
}
void RowsBF16(Reduction kind, const uint16_t* x, int64_t stride, int64_t rows, int64_t columns,
              float* acc) {
  RowsOf(kind, x, stride, rows, columns, acc);
}

template <typename T>
double SumExpOf(const T* x, size_t count, float shift) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  double sum = 0;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t end = HWY_MIN(begin + kBlock, count);
    V a = hn::Zero(d), b = hn::Zero(d);
    size_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      a = hn::Add(a, ExpOfNegative(hn::Sub(LoadFloats(x + i), K(shift))));
      b = hn::Add(b, ExpOfNegative(hn::Sub(LoadFloats(x + i + lanes), K(shift))));
    }
    float block = AcrossLanes(hn::Add(a, b), Sum());
    for (; i < end; ++i) block += hn::GetLane(ExpOfNegative(K(ToFloat(x[i]) - shift)));
    sum += block;
  }
  return sum;
}

double SumExp(const float* x, int64_t count, float shift) {
  return SumExpOf(x, static_cast<size_t>(count), shift);
}
double SumExpBF16(const uint16_t* x, int64_t count, float shift) {
  return SumExpOf(x, static_cast<size_t>(count), shift);
}

template <typename T>
void SumExpRow(const T* x, size_t columns, const float* shift, float* acc) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  size_t c = 0;
  for (; c + lanes <= columns; c += lanes) {
    const V term = ExpOfNegative(hn::Sub(LoadFloats(x + c), hn::LoadU(d, shift + c)));
    hn::StoreU(hn::Add(hn::LoadU(d, acc + c), term), d, acc + c);
  }
  for (; c < columns; ++c) acc[c] += hn::GetLane(ExpOfNegative(K(ToFloat(x[c]) - shift[c])));
}

template <typename T>
void SumExpRowsOf(const T* x, int64_t stride, int64_t rows, int64_t columns, const float* shift,
                  float* acc) {
  for (int64_t r = 0; r < rows; ++r)
    SumExpRow(x + r * stride, static_cast<size_t>(columns), shift, acc);
}

void SumExpAllRows(const float* x, int64_t stride, int64_t rows, int64_t columns,
                   const float* shift, float* acc) {
  SumExpRowsOf(x, stride, rows, columns, shift, acc);
}
void SumExpAllRowsBF16(const uint16_t* x, int64_t stride, int64_t rows, int64_t columns,
                       const float* shift, float* acc) {
  SumExpRowsOf(x, stride, rows, columns, shift, acc);
}

void AddLogs(const float* sums, int64_t count, float* y) {
  const D d;
  const auto n = static_cast<size_t>(count), lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    const size_t some = HWY_MIN(lanes, n - i);
    const V most = LoadFirst(y + i, some);
    const V log = hn::Log(d, LoadFirst(sums + i, some));
    StoreFirst(hn::IfThenElse(hn::IsFinite(most), hn::Add(most, log), most), y + i, some);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(Run);
HWY_EXPORT(RunBF16);
HWY_EXPORT(Rows);
HWY_EXPORT(RowsBF16);
HWY_EXPORT(SumExp);
HWY_EXPORT(SumExpBF16);
HWY_EXPORT(SumExpAllRows);
HWY_EXPORT(SumExpAllRowsBF16);
HWY_EXPORT(AddLogs);

double ReductionStart(Reduction kind) {
  if (kind == Reduction::kSum) return 0;
  const double infinity = std::numeric_limits<double>::infinity();
  return kind == Reduction::kMax ? -infinity : infinity;
}

double Combine(Reduction kind, double a, double b) {
  if (kind == Reduction::kSum) return a + b;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return kind == Reduction::kMax ? (b > a ? b : a) : (b < a ? b : a);
}

double ReduceRun(Reduction kind, const float* x, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(Run)(kind, x, count);
}

double ReduceRun(Reduction kind, const uint16_t* x, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(RunBF16)(kind, x, count);
}

void ReduceRows(Reduction kind, const float* x, int64_t row_stride, int64_t rows, int64_t columns,
                float* acc) {
  HWY_DYNAMIC_DISPATCH(Rows)(kind, x, row_stride, rows, columns, acc);
}

void ReduceRows(Reduction kind, const uint16_t* x, int64_t row_stride, int64_t rows,
                int64_t columns, float* acc) {
  HWY_DYNAMIC_DISPATCH(RowsBF16)(kind, x, row_stride, rows, columns, acc);
}

double SumExpRun(const float* x, int64_t count, float shift) {
  return HWY_DYNAMIC_DISPATCH(SumExp)(x, count, shift);
}

double SumExpRun(const uint16_t* x, int64_t count, float shift) {
  return HWY_DYNAMIC_DISPATCH(SumExpBF16)(x, count, shift);
}

void SumExpRows(const float* x, int64_t row_stride, int64_t rows, int64_t columns,
                const float* shift, float* acc) {
  HWY_DYNAMIC_DISPATCH(SumExpAllRows)(x, row_stride, rows, columns, shift, acc);
}

void SumExpRows(const uint16_t* x, int64_t row_stride, int64_t rows, int64_t columns,
                const float* shift, float* acc) {
  HWY_DYNAMIC_DISPATCH(SumExpAllRowsBF16)(x, row_stride, rows, columns, shift, acc);
}

void AddLog(const float* sums, int64_t count, float* y) {
  HWY_DYNAMIC_DISPATCH(AddLogs)(sums, count, y);
}

}  // namespace ridge::cpu
#endif

// Dots: lanes are the inner dimension, so that no lane is padding, however few columns there are.
// A tile of rows by columns has one vector of partial sums each; the inner dimension is cut into
// runs for which all columns of b stay in the first-level cache while the rows pass.  Partial sums
// are kept from run to run and added up across lanes once.
//
// Sums: small_matmul-inl.h, whose lanes are the columns.
#include <algorithm>
#include <cstring>

#include "ridge/backend/cpu/kernels/skinny_gemm.h"
#include "ridge/core/rounding.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/skinny_gemm_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/small_matmul-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {

// 4 by 6 sums, 4 vectors of a and one of b within 32 registers; 2 by 4 within 16.
constexpr int kTileRows = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
constexpr int kTileColumns = HWY_TARGET <= HWY_AVX3 ? 6 : 4;
constexpr int64_t kRun = 512;       // of the inner dimension: 16 columns take 32 KB
constexpr int64_t kBlockRows = 32;  // whose partial sums are kept
constexpr int64_t kSumLanes = 16;

// Runs of some rows and columns.
struct Part {
  const float *a, *b;
  int64_t a_row, b_row;
  int64_t count;  // of the inner dimension
  float* sums;    // [rows, columns, kSumLanes]
  int64_t sums_row;
  bool first;  // nothing is in sums yet
};

template <int kRows, int kColumns>
HWY_INLINE void AddTile(const Part& p) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[kRows][kColumns];
#pragma GCC unroll 4
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 6
    for (int n = 0; n < kColumns; ++n)
      sums[m][n] = p.first ? hn::Zero(d) : hn::Load(d, p.sums + m * p.sums_row + n * kSumLanes);
  }
  const auto step = [&](const auto& load, int64_t k) HWY_ATTR {
    V a[kRows];
#pragma GCC unroll 4
    for (int m = 0; m < kRows; ++m) a[m] = load(p.a + m * p.a_row + k);
#pragma GCC unroll 6
    for (int n = 0; n < kColumns; ++n) {
      const V b = load(p.b + n * p.b_row + k);
#pragma GCC unroll 4
      for (int m = 0; m < kRows; ++m) sums[m][n] = hn::MulAdd(a[m], b, sums[m][n]);
    }
  };
  int64_t k = 0;
  for (; k + lanes <= p.count; k += lanes)
    step([&](const float* x) HWY_ATTR { return hn::LoadU(d, x); }, k);
  if (k < p.count) {
    const auto few = static_cast<size_t>(p.count - k);
    step([&](const float* x) HWY_ATTR { return LoadFirst(x, few); }, k);
  }
#pragma GCC unroll 4
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 6
    for (int n = 0; n < kColumns; ++n)
      hn::Store(sums[m][n], d, p.sums + m * p.sums_row + n * kSumLanes);
  }
}

template <int kRows>
HWY_INLINE void AddColumns(int columns, const Part& p) {
  if (columns == 1) return AddTile<kRows, 1>(p);
  if (columns == 2) return AddTile<kRows, 2>(p);
  if (columns == 3) return AddTile<kRows, 3>(p);
  if (columns == 4) return AddTile<kRows, 4>(p);
  if constexpr (kTileColumns > 4) {
    if (columns == 5) return AddTile<kRows, 5>(p);
    AddTile<kRows, 6>(p);
  }
}

// All columns of some rows, in groups of nearly equal width.
template <int kRows>
HWY_INLINE void AddRows(int64_t columns, Part p) {
  int64_t groups = CeilDiv(columns, kTileColumns);
  for (int64_t left = columns; left > 0; --groups) {
    const int64_t width = CeilDiv(left, groups);
    AddColumns<kRows>(static_cast<int>(width), p);
    p.b += width * p.b_row;
    p.sums += width * kSumLanes;
    left -= width;
  }
}

// Partial sums of `rows` <= kBlockRows rows from `first` on.
void SumBlock(const SkinnyDots& dots, int64_t first, int64_t rows, float* sums) {
  const int64_t sums_row = dots.columns * kSumLanes;
  for (int64_t k = 0; k < dots.inner; k += kRun) {
    Part p{dots.a.data + first * dots.a.row + k,
           dots.b.data + k,
           dots.a.row,
           dots.b.row,
           std::min(kRun, dots.inner - k),
           sums,
           sums_row,
           k == 0};
    int64_t left = rows;
    const auto advance = [&](int64_t count) {
      p.a += count * p.a_row;
      p.sums += count * sums_row;
      left -= count;
    };
    for (; left >= kTileRows; advance(kTileRows)) AddRows<kTileRows>(dots.columns, p);
    for (; left > 0; advance(1)) AddRows<1>(dots.columns, p);
  }
}

void Dots(const SkinnyDots& dots, float* sums) {
  const D d;
  for (int64_t first = 0; first < dots.rows; first += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, dots.rows - first);
    SumBlock(dots, first, rows, sums);
    const float* at = sums;
    for (int64_t m = 0; m < rows; ++m) {
      float* y = dots.y + (first + m) * dots.y_row;
      for (int64_t n = 0; n < dots.columns; ++n, at += kSumLanes) {
        const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, at)));
        y[n] = dots.bias == nullptr ? sum : sum + dots.bias[n];
      }
    }
  }
}

// A block of the inner dimension at a time, so that what one group of rows of c has read of b is
// still in the first-level cache for the next group.
void Sums(const SkinnySums& s) {
  constexpr int64_t kInner = 64;
  for (int64_t k = 0; k < s.inner; k += kInner) {
    small_matmul::Multiply(s.rows, s.columns, std::min(kInner, s.inner - k),
                           {s.a + k * s.a_col, s.a_row, s.a_col}, s.b.data + k * s.b.row, s.b.row,
                           {s.c, s.c_row, s.add || k > 0});
  }
}

void AddParts(const SkinnyParts& parts, const float* extra, int64_t count, float* y) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    V sum = hn::LoadU(d, parts.data + i);
    if (extra != nullptr) sum = hn::Add(hn::LoadU(d, extra + i), sum);
    for (int part = 1; part < parts.count; ++part)
      sum = hn::Add(sum, hn::LoadU(d, parts.data + part * parts.step + i));
    hn::StoreU(sum, d, y + i);
  }
  for (; i < count; ++i) {
    float sum = parts.data[i];
    if (extra != nullptr) sum = extra[i] + sum;
    for (int part = 1; part < parts.count; ++part) sum += parts.data[part * parts.step + i];
    y[i] = sum;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(Dots);
HWY_EXPORT(Sums);
HWY_EXPORT(AddParts);

int64_t SkinnyDotsFloats() { return 32 * kSkinnyDotsColumns * 16; }

void RunSkinnyDots(const SkinnyDots& dots, float* scratch) {
  HWY_DYNAMIC_DISPATCH(Dots)(dots, scratch);
}
void AddSkinnyParts(const SkinnyParts& parts, const float* extra, int64_t count, float* y) {
  HWY_DYNAMIC_DISPATCH(AddParts)(parts, extra, count, y);
}
void RunSkinnySums(const SkinnySums& sums) { HWY_DYNAMIC_DISPATCH(Sums)(sums); }

}  // namespace ridge::cpu
#endif

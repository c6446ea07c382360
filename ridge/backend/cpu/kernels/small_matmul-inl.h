// c (+)= a b of f32 matrices that are in cache, for files compiled once per instruction set.
//
// 6 rows by 4 vectors (2 where there are 16 registers) are summed in registers: per step of the
// inner dimension the vectors of b are loaded once and each number of a is broadcast.  So b needs
// its columns side by side, and a may have any strides: transposed a costs nothing.
// Each element is summed over the inner dimension in order, whatever the extents.
#if defined(RIDGE_CPU_SMALL_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGE_CPU_SMALL_MATMUL_INL_H_
#undef RIDGE_CPU_SMALL_MATMUL_INL_H_
#else
#define RIDGE_CPU_SMALL_MATMUL_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace small_matmul {

#if HWY_TARGET <= HWY_AVX3
constexpr int kMostVectors = 4;
#else
constexpr int kMostVectors = 2;
#endif
constexpr int kMostRows = 6;

// An operand: row i begins at data + i * row, its elements are `col` apart.
struct Matrix {
  const float* data;
  int64_t row, col;
};
struct Result {
  float* data;
  int64_t row;
  bool add;  // to what is there
};

// kRows rows by kVectors vectors of c; the last vector has `last` lanes when kPartial.
template <int kRows, int kVectors, bool kPartial>
HWY_INLINE void Block(const Matrix& a, const float* b, int64_t b_row, int64_t inner, size_t last,
                      const Result& c) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const auto load = [&](const float* x, int v) HWY_ATTR {
    const float* at = x + static_cast<size_t>(v) * lanes;
    return kPartial && v == kVectors - 1 ? LoadFirst(at, last) : hn::LoadU(d, at);
  };
  V sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[m][v] = hn::Zero(d);
  }
  for (int64_t k = 0; k < inner; ++k) {
    V columns[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) columns[v] = load(b + k * b_row, v);
#pragma GCC unroll 8
    for (int m = 0; m < kRows; ++m) {
      const V x = hn::Set(d, a.data[m * a.row + k * a.col]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[m][v] = hn::MulAdd(x, columns[v], sums[m][v]);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < kRows; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* at = c.data + m * c.row;
      V sum = sums[m][v];
      if (c.add) sum = hn::Add(load(at, v), sum);
      at += static_cast<size_t>(v) * lanes;
      if (kPartial && v == kVectors - 1) {
        StoreFirst(sum, at, last);
      } else {
        hn::StoreU(sum, d, at);
      }
    }
  }
}

// All rows of one group of columns.
template <int kVectors, bool kPartial>
void Columns(int64_t rows, Matrix a, const float* b, int64_t b_row, int64_t inner, size_t last,
             Result c) {
  const auto advance = [&](int64_t count) {
    a.data += count * a.row;
    c.data += count * c.row;
    rows -= count;
  };
  for (; rows >= kMostRows; advance(kMostRows))
    Block<kMostRows, kVectors, kPartial>(a, b, b_row, inner, last, c);
  for (; rows >= 4; advance(4)) Block<4, kVectors, kPartial>(a, b, b_row, inner, last, c);
  for (; rows >= 2; advance(2)) Block<2, kVectors, kPartial>(a, b, b_row, inner, last, c);
  if (rows == 1) Block<1, kVectors, kPartial>(a, b, b_row, inner, last, c);
}

template <bool kPartial>
HWY_INLINE void SomeColumns(int vectors, int64_t rows, const Matrix& a, const float* b,
                            int64_t b_row, int64_t inner, size_t last, const Result& c) {
  if (vectors == 1) return Columns<1, kPartial>(rows, a, b, b_row, inner, last, c);
  if (vectors == 2) return Columns<2, kPartial>(rows, a, b, b_row, inner, last, c);
  if constexpr (kMostVectors > 2) {
    if (vectors == 3) return Columns<3, kPartial>(rows, a, b, b_row, inner, last, c);
    Columns<4, kPartial>(rows, a, b, b_row, inner, last, c);
  }
}

// c [rows, columns] (+)= a [rows, inner] b [inner, columns]; row k of b begins at b + k * b_row.
inline void Multiply(int64_t rows, int64_t columns, int64_t inner, const Matrix& a, const float* b,
                     int64_t b_row, const Result& c) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t n = 0; n < columns; n += kMostVectors * lanes) {
    const int64_t width = std::min(columns - n, kMostVectors * lanes);
    const auto vectors = static_cast<int>((width + lanes - 1) / lanes);
    const auto last = static_cast<size_t>(width - (vectors - 1) * lanes);
    const Result part{c.data + n, c.row, c.add};
    if (static_cast<int64_t>(last) == lanes) {
      SomeColumns<false>(vectors, rows, a, b + n, b_row, inner, last, part);
    } else {
      SomeColumns<true>(vectors, rows, a, b + n, b_row, inner, last, part);
    }
  }
}

}  // namespace small_matmul
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();
#endif

// Blocked as in BLIS (Van Zee and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS
// Functionality", 2015): a block of a and one of b are packed so that the inner loop reads both in
// order; a tile of c stays in registers while it runs along k.
//
// Few rows are not worth packing: then rows of b are added up (or, where b is transposed,
// dotted).
#include <algorithm>

#include "ridge/backend/cpu/kernels/gemm_f64.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/gemm_f64_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

// With 32 registers 24 of them hold the tile, with 16 it is 12.
constexpr int64_t kTileRows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;
constexpr int64_t kVectors = 2;
constexpr int64_t kBlockRows = 96, kBlockDepth = 256, kBlockColumns = 256;
static_assert(kBlockRows % kTileRows == 0);

HWY_INLINE int64_t TileColumns() { return kVectors * static_cast<int64_t>(hn::Lanes(D())); }

// rows x depth of a, in strips of kTileRows rows; missing rows are zeros.
void PackA(const MatrixF64& a, int64_t rows, int64_t depth, double* to) {
  for (int64_t i = 0; i < rows; i += kTileRows) {
    const int64_t height = std::min(kTileRows, rows - i);
    for (int64_t k = 0; k < depth; ++k, to += kTileRows) {
      const double* from = a.data + i * a.row + k * a.col;
      for (int64_t r = 0; r < height; ++r) to[r] = from[r * a.row];
      std::fill(to + height, to + kTileRows, 0.0);
    }
  }
}

// depth x columns of b, in strips of one tile's columns; missing columns are zeros.
void PackB(const MatrixF64& b, int64_t depth, int64_t columns, double* to) {
  const int64_t width = TileColumns();
  for (int64_t j = 0; j < columns; j += width) {
    const int64_t whole = std::min(width, columns - j);
    for (int64_t k = 0; k < depth; ++k, to += width) {
      const double* from = b.data + k * b.row + j * b.col;
      if (b.col == 1) {
        std::copy_n(from, whole, to);
      } else {
        for (int64_t r = 0; r < whole; ++r) to[r] = from[r * b.col];
      }
      std::fill(to + whole, to + width, 0.0);
    }
  }
}

// Unrolled by hand, or the compiler keeps the sums in memory.
// c (kTileRows x two vectors, `row` apart) = or += strip of a times strip of b.
HWY_INLINE void Tile(const double* a, const double* b, int64_t depth, bool add, double* c,
                     int64_t row) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kTileRows][kVectors];
#pragma GCC unroll 12
  for (int64_t r = 0; r < kTileRows; ++r) sum[r][0] = sum[r][1] = hn::Zero(d);
  for (int64_t k = 0; k < depth; ++k, a += kTileRows, b += kVectors * lanes) {
    const V b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + lanes);
#pragma GCC unroll 12
    for (int64_t r = 0; r < kTileRows; ++r) {
      const V factor = hn::Set(d, a[r]);
      sum[r][0] = hn::MulAdd(factor, b0, sum[r][0]);
      sum[r][1] = hn::MulAdd(factor, b1, sum[r][1]);
    }
  }
#pragma GCC unroll 12
  for (int64_t r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) {
      double* to = c + r * row + v * lanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sum[r][v]) : sum[r][v], d, to);
    }
  }
}

// A tile that hangs over the end of c goes through memory of its own.
void EdgeTile(const double* a, const double* b, int64_t depth, bool add, int64_t rows,
              int64_t columns, double* c, int64_t row) {
  HWY_ALIGN double whole[kTileRows * kVectors * HWY_MAX_BYTES / sizeof(double)];
  const int64_t width = TileColumns();
  Tile(a, b, depth, /*add=*/false, whole, width);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      double& to = c[r * row + j];
      to = (add ? to : 0) + whole[r * width + j];
    }
  }
}

// One packed block of a times one of b.
void Block(const double* a, const double* b, int64_t rows, int64_t columns, int64_t depth, bool add,
           double* c, int64_t row) {
  const int64_t width = TileColumns();
  for (int64_t j = 0; j < columns; j += width) {
    for (int64_t i = 0; i < rows; i += kTileRows) {
      const double *strip_a = a + i * depth, *strip_b = b + j * depth;
      double* to = c + i * row + j;
      if (i + kTileRows <= rows && j + width <= columns) {
        Tile(strip_a, strip_b, depth, add, to, row);
      } else {
        EdgeTile(strip_a, strip_b, depth, add, std::min(kTileRows, rows - i),
                 std::min(width, columns - j), to, row);
      }
    }
  }
}

void Packed(const GemmF64& g, double* scratch) {
  double *packed_a = scratch, *packed_b = scratch + kBlockRows * kBlockDepth;
  for (int64_t j = 0; j < g.n; j += kBlockColumns) {
    const int64_t columns = std::min(kBlockColumns, g.n - j);
    for (int64_t k = 0; k < g.k; k += kBlockDepth) {
      const int64_t depth = std::min(kBlockDepth, g.k - k);
      PackB({g.b.data + k * g.b.row + j * g.b.col, g.b.row, g.b.col}, depth, columns, packed_b);
      for (int64_t i = 0; i < g.m; i += kBlockRows) {
        const int64_t rows = std::min(kBlockRows, g.m - i);
        PackA({g.a.data + i * g.a.row + k * g.a.col, g.a.row, g.a.col}, rows, depth, packed_a);
        Block(packed_a, packed_b, rows, columns, depth, g.add || k > 0, g.c + i * g.c_row + j,
              g.c_row);
      }
    }
  }
}

// y += factor * x
HWY_INLINE void AddScaled(double factor, const double* x, double* y, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V s = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::MulAdd(s, hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, y + i);
  for (; i < count; ++i) y[i] += factor * x[i];
}

// Rows of b side by side: a run of c stays in the first-level cache while k runs.
void AddRows(const GemmF64& g) {
  constexpr int64_t kRun = 1024;
  for (int64_t j = 0; j < g.n; j += kRun) {
    const int64_t count = std::min(kRun, g.n - j);
    for (int64_t i = 0; i < g.m; ++i) {
      double* c = g.c + i * g.c_row + j;
      if (!g.add) std::fill_n(c, count, 0.0);
      for (int64_t k = 0; k < g.k; ++k)
        AddScaled(g.a.data[i * g.a.row + k * g.a.col], g.b.data + k * g.b.row + j, c, count);
    }
  }
}

HWY_INLINE double Dot(const double* x, const double* y, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    s0 = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), s0);
    s1 = hn::MulAdd(hn::LoadU(d, x + i + lanes), hn::LoadU(d, y + i + lanes), s1);
    s2 = hn::MulAdd(hn::LoadU(d, x + i + 2 * lanes), hn::LoadU(d, y + i + 2 * lanes), s2);
    s3 = hn::MulAdd(hn::LoadU(d, x + i + 3 * lanes), hn::LoadU(d, y + i + 3 * lanes), s3);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < count; ++i) sum += x[i] * y[i];
  return sum;
}

void DotRows(const GemmF64& g) {
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      double& c = g.c[i * g.c_row + j];
      c = (g.add ? c : 0) + Dot(g.a.data + i * g.a.row, g.b.data + j * g.b.col, g.k);
    }
  }
}

void Run(const GemmF64& g, double* scratch) {
  const bool skinny = g.m < 4 || g.k < 4;
  if (skinny && g.b.col == 1) return AddRows(g);
  if ((g.m < 4 || g.n < 4) && g.a.col == 1 && g.b.row == 1) return DotRows(g);
  Packed(g, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(Run);

void RunGemm(const GemmF64& gemm, double* scratch) {
  if (gemm.m > 0 && gemm.n > 0) HWY_DYNAMIC_DISPATCH(Run)(gemm, scratch);
}

EpilogueF64::EpilogueF64(const OpCall& call, size_t first_extra_input)
    : steps_(*ParseEpilogue(call.text("epilogue"), call.where)), first_extra_(first_extra_input) {}

void EpilogueF64::Apply(const void* const* inputs, int64_t begin, int64_t end, double* y) const {
  for (const EpilogueStep& step : steps_) {
    const bool adds = step.extra >= 0;
    const auto* extra =
        adds ? static_cast<const double*>(inputs[first_extra_ + static_cast<size_t>(step.extra)])
             : nullptr;
    for (int64_t i = begin; i < end; ++i) {
      const double args[2] = {y[i], adds ? extra[i] : 0};
      y[i] = step.op->elementwise({args, adds ? size_t{2} : size_t{1}}, step.attrs);
    }
  }
}

}  // namespace ridge::cpu
#endif

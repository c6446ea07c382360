// Blocked as in BLIS (Van Zee and van de Geijn, "BLIS: A Framework for Rapidly Instantiating BLAS
// Functionality", 2015).  A block of b, [depth, columns], is packed into panels two vectors wide
// and stays in the second cache; a strip of a, 14 rows by depth, is packed into the first.  A tile
// of c stays in registers while it runs along the depth: 14 rows of two vectors read 16 numbers or
// vectors for 28 multiply-adds and, of the second cache, two lines.
//
// While a tile is computed, some lines of what is packed next are fetched: activations of the
// forward pass come from memory in the backward pass, and packing would wait for them.
#include <algorithm>
#include <cstring>

#include "ridge/backend/cpu/kernels/gemm_f32.h"
#include "ridge/backend/cpu/kernels/strided_copy.h"
#include "ridge/core/rounding.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/gemm_f32_simd.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/small_matmul-inl.h"

#ifndef RIDGE_GEMM_F32_BLOCKS
#define RIDGE_GEMM_F32_BLOCKS
namespace ridge::cpu {
namespace {

constexpr int64_t kMostDepth = 256, kMostColumns = 384;
constexpr int64_t kLine = 16;  // floats
constexpr int64_t kWidestPanel = 32;
// A tile's depth is cut in so many parts; some lines are fetched before each.  All at once would
// take the buffers that the tile's own loads need.
constexpr int64_t kParts = 16;
constexpr int64_t kStrips = 8;  // of a are packed at once, so that lines are read whole

// The longest run of at most `most` that cuts `count` in equal parts.
int64_t EqualRun(int64_t count, int64_t most, int64_t grain) {
  const int64_t run = CeilDiv(count, CeilDiv(count, most));
  return CeilDiv(run, grain) * grain;
}

}  // namespace
}  // namespace ridge::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {

// With 32 registers 28 of them hold the tile, with 16 it is 12.
constexpr int kTileRows = HWY_TARGET <= HWY_AVX3 ? 14 : 6;
constexpr int kVectors = 2;
constexpr int64_t kSlot = kTileRows > 8 ? 16 : 8;  // floats of one step of a strip
// Few rows are read where they lie; many would share sets of the first cache.
constexpr bool kReadsRows = kTileRows <= 8;
static_assert(kReadsRows == (HWY_TARGET > HWY_AVX3), "GemmF32PacksA says the same");
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
constexpr int64_t kPanel = kVectors * kLanes;

// A rectangle that is fetched some lines at a time.
struct Fetch {
  const float* data = nullptr;
  int64_t stride = 0, floats = 0, rows = 0;  // `rows` runs of `floats`, `stride` apart
  int64_t row = 0, at = 0;

  HWY_INLINE void Some(int64_t lines) {
    for (; lines > 0 && row < rows; --lines) {
      __builtin_prefetch(data + row * stride + at, /*rw=*/0, /*locality=*/2);  // second cache
      at += kLine;
      if (at < floats + kLine - 1) continue;  // the last line may begin behind a step
      at = 0;
      ++row;
    }
  }
  int64_t lines() const { return rows * (CeilDiv(floats, kLine) + 1); }
};

// Strips are a line further apart than they are long, or they would share sets of the cache.
HWY_INLINE int64_t StripFloats(int64_t depth) {
  return CeilDiv(depth * kSlot, kLine) * kLine + kLine;
}

// The first numbers of a row, as many as a strip has rows.
HWY_INLINE void CopySlot(const float* from, int64_t rows, float* to) {
#if HWY_TARGET <= HWY_AVX2
  const D d;
  hn::Store(hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(rows)), d, from), d, to);
#else
  std::memcpy(to, from, static_cast<size_t>(rows) * sizeof(float));
#endif
}

// rows x depth of one strip, a step of the depth in each slot.
void PackStrip(const MatrixF32& a, int64_t rows, int64_t depth, float* to) {
  constexpr int64_t kRun = 128;  // what TransposeSquare takes at once
  for (int64_t k = 0; a.col == 1 && k < depth; k += kRun) {
    TransposeSquare(sizeof(float), reinterpret_cast<const std::byte*>(a.data + k), a.row * 4,
                    reinterpret_cast<std::byte*>(to + k * kSlot), kSlot * 4, rows,
                    std::min(kRun, depth - k));
  }
  for (int64_t k = 0; a.col != 1 && k < depth; ++k, to += kSlot) {
    for (int64_t r = 0; r < rows; ++r) to[r] = a.data[r * a.row + k * a.col];
  }
}

// rows x depth of a in strips of `height` rows.
void PackA(const MatrixF32& a, int64_t rows, int64_t height, int64_t depth, float* to) {
  const int64_t stride = StripFloats(depth);
  if (a.row == 1) {
    for (int64_t k = 0; k < depth; ++k) {
      float* slot = to + k * kSlot;
      for (int64_t r = 0; r < rows; r += height, slot += stride)
        CopySlot(a.data + k * a.col + r, std::min(height, rows - r), slot);
    }
    return;
  }
  for (int64_t r = 0; r < rows; r += height, to += stride) {
    const MatrixF32 strip{a.data + r * a.row, a.row, a.col};
    PackStrip(strip, std::min(height, rows - r), depth, to);
  }
}

// depth x columns of b in panels [depth][kPanel]; missing columns are zeros.
void PackB(const MatrixF32& b, int64_t depth, int64_t columns, float* to) {
  constexpr int64_t kRows = 8;  // read side by side: as many streams as the prefetchers follow
  if (b.col == 1) {
    for (int64_t k = 0; k < depth; k += kRows) {
      const int64_t rows = std::min(kRows, depth - k);
      for (int64_t j = 0; j < columns; j += kPanel) {
        const int64_t width = std::min(kPanel, columns - j);
        float* panel = to + j * depth + k * kPanel;
        for (int64_t r = 0; r < rows; ++r, panel += kPanel) {
          const float* from = b.data + (k + r) * b.row + j;
          if (width == kPanel) {
            const D d;
            hn::Store(hn::LoadU(d, from), d, panel);
            hn::Store(hn::LoadU(d, from + kLanes), d, panel + kLanes);
          } else {
            std::memcpy(panel, from, static_cast<size_t>(width) * sizeof(float));
            std::fill(panel + width, panel + kPanel, 0.0F);
          }
        }
      }
    }
    return;
  }
  for (int64_t j = 0; j < columns; j += kPanel) {
    const int64_t width = std::min(kPanel, columns - j);
    float* panel = to + j * depth;
    if (width < kPanel) std::fill_n(panel, depth * kPanel, 0.0F);
    constexpr int64_t kRun = 128;
    for (int64_t k = 0; k < depth; k += kRun) {
      const float* from = b.data + j * b.col + k * b.row;
      const int64_t run = std::min(kRun, depth - k);
      if (b.row == 1) {
        TransposeSquare(sizeof(float), reinterpret_cast<const std::byte*>(from), b.col * 4,
                        reinterpret_cast<std::byte*>(panel + k * kPanel), kPanel * 4, width, run);
      } else {
        for (int64_t r = 0; r < run; ++r) {
          for (int64_t i = 0; i < width; ++i)
            panel[(k + r) * kPanel + i] = from[r * b.row + i * b.col];
        }
      }
    }
  }
}

// Where a tile goes, what is added to it, and what is fetched meanwhile.
struct Target {
  float* c;
  int64_t row;
  int64_t columns;            // of c from here on; less than the tile at its right edge
  const float *extra, *bias;  // or nullptr
  bool relu;
  Fetch *next_a, *next_b;
  int64_t lines_a, lines_b;  // in each of kParts
};

HWY_INLINE V AddFrom(const float* from, int64_t columns, V sum) {
  if (columns >= kLanes) return hn::Add(sum, hn::LoadU(D(), from));
  return hn::Add(sum, LoadFirst(from, static_cast<size_t>(columns)));
}

// Vector v of row r of the tile.
HWY_INLINE void Finish(V sum, const Target& t, int64_t r, int64_t v) {
  const int64_t at = r * t.row + v * kLanes, columns = t.columns - v * kLanes;
  if (t.bias != nullptr) sum = AddFrom(t.bias + v * kLanes, columns, sum);
  if (t.extra != nullptr) sum = AddFrom(t.extra + at, columns, sum);
  if (t.relu) sum = hn::Max(hn::Zero(D()), sum);  // in this order a NaN stays
  if (columns >= kLanes) {
    hn::StoreU(sum, D(), t.c + at);
  } else {
    StoreFirst(sum, t.c + at, static_cast<size_t>(columns));
  }
}

// Rows of a: packed, or where they lie (row > 1).
struct Strip {
  const float* data;
  int64_t row;
};

// Some lines of what comes next, and row `part` of what the tile is added to.
template <int kRows, int kWidth>
HWY_INLINE void FetchPart(const Target& t, int64_t part) {
  t.next_a->Some(t.lines_a);
  t.next_b->Some(t.lines_b);
  if (part >= kRows) return;
  const float* row = (t.extra == nullptr ? t.c : t.extra) + part * t.row;
  hwy::Prefetch(row);
  if (kWidth > 1) hwy::Prefetch(row + kLanes);
}

// kRows rows by kWidth vectors of c = or += a strip of a times a panel of b.
template <int kRows, int kWidth, bool kPacked>
HWY_NOINLINE void Tile(const Strip& strip, const float* HWY_RESTRICT b, int64_t depth,
                       const Target& t) {
  constexpr int kNear = 3;  // rows that one address register and its multiples of `row` reach
  const int64_t row = kPacked ? 1 : strip.row;
  const float* HWY_RESTRICT a = strip.data;
  const float* HWY_RESTRICT far = a + kNear * row;
  const D d;
  V sum[kRows][kWidth];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kWidth; ++v) sum[r][v] = hn::Zero(d);
  }
  const int64_t steps = CeilDiv(depth, kParts);
  for (int64_t k = 0, part = 0; k < depth; ++part) {
    FetchPart<kRows, kWidth>(t, part);
    for (const int64_t end = std::min(depth, k + steps); k < end; ++k, b += kPanel) {
      V column[kWidth];
#pragma GCC unroll 2
      for (int v = 0; v < kWidth; ++v) column[v] = hn::Load(d, b + v * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const V x = hn::Set(d, kPacked || r < kNear ? a[r * row] : far[(r - kNear) * row]);
#pragma GCC unroll 2
        for (int v = 0; v < kWidth; ++v) sum[r][v] = hn::MulAdd(x, column[v], sum[r][v]);
      }
      a += kPacked ? kSlot : 1;
      far += kPacked ? kSlot : 1;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kWidth; ++v) Finish(sum[r][v], t, r, v);
  }
}

template <int kRows>
HWY_INLINE void TileOf(int64_t rows, const Strip& a, const float* b, int64_t depth,
                       const Target& t) {
  if (rows == kRows) {
    if constexpr (kReadsRows) {
      if (a.row != 1 && t.columns > kLanes) return Tile<kRows, 2, false>(a, b, depth, t);
      if (a.row != 1) return Tile<kRows, 1, false>(a, b, depth, t);
    }
    if (t.columns > kLanes) return Tile<kRows, 2, true>(a, b, depth, t);
    return Tile<kRows, 1, true>(a, b, depth, t);
  }
  if constexpr (kRows > 1) TileOf<kRows - 1>(rows, a, b, depth, t);
}

Fetch FetchOf(const MatrixF32& x, int64_t rows, int64_t columns) {
  if (x.col == 1) return {x.data, x.row, columns, rows};
  if (x.row == 1) return {x.data, x.col, rows, columns};
  return {};
}

bool PacksA(bool row_major) { return !kReadsRows || !row_major; }

// One block of b under all rows of a.
struct Step {
  int64_t j, columns, k, depth;
  int64_t lines_a = 0, lines_b = 0;  // of what comes next, for each part of a tile
};

// A strip of a, its first row being i, by all panels.
void MultiplyStrip(const GemmF32& g, const Step& s, int64_t i, int64_t rows, const Strip& a,
                   const float* b, Fetch& next_a, Fetch& next_b) {
  for (int64_t p = 0; p < s.columns; p += kPanel) {
    const int64_t at = i * g.c_row + s.j + p;
    const float* before = s.k > 0 ? g.c : g.extra;
    const Target to{.c = g.c + at,
                    .row = g.c_row,
                    .columns = s.columns - p,
                    .extra = before == nullptr ? nullptr : before + at,
                    .bias = s.k > 0 || g.bias == nullptr ? nullptr : g.bias + s.j + p,
                    .relu = g.relu && s.k + s.depth == g.k,
                    .next_a = &next_a,
                    .next_b = &next_b,
                    .lines_a = s.lines_a,
                    .lines_b = s.lines_b};
    TileOf<kTileRows>(rows, a, b + p * s.depth, s.depth, to);
  }
}

class Product {
 public:
  Product(const GemmF32& g, float* scratch)
      : g_(g),
        depth_(EqualRun(g.k, kMostDepth, 1)),
        columns_(EqualRun(g.n, kMostColumns, kPanel)),
        height_(EqualRun(g.m, kTileRows, 1)),
        group_(std::min(height_ * kStrips, g.m)),
        packs_a_(PacksA(g.a.col == 1 && g.a.row > 1)),
        a_(scratch + (kLine - reinterpret_cast<uintptr_t>(scratch) / 4 % kLine) % kLine),
        b_(a_ + kStrips * StripFloats(depth_)) {}

  void Run() {
    for (Step s = At(0, 0); s.j < g_.n; s = Next(s)) {
      PackB(View(g_.b, s.k, s.j), s.depth, s.columns, b_);
      const Step next = Next(s);
      Fetch next_b;
      if (next.j < g_.n) next_b = FetchOf(View(g_.b, next.k, next.j), next.depth, next.columns);
      s.lines_b = LinesAPart(next_b, g_.m, s.columns);
      for (int64_t i = 0; i < g_.m; i += group_) MultiplyGroup(s, next, i, next_b);
    }
  }

 private:
  Step At(int64_t j, int64_t k) const {
    return {j, std::min(columns_, g_.n - j), k, std::min(depth_, g_.k - k)};
  }
  Step Next(const Step& s) const {
    return s.k + depth_ < g_.k ? At(s.j, s.k + depth_) : At(s.j + columns_, 0);
  }
  // The part of an operand that begins at (i, j).
  static MatrixF32 View(const MatrixF32& x, int64_t i, int64_t j) {
    return {x.data + i * x.row + j * x.col, x.row, x.col};
  }

  // So that all of it is fetched beside these tiles.
  int64_t LinesAPart(const Fetch& next, int64_t rows, int64_t columns) const {
    return CeilDiv(next.lines(), CeilDiv(rows, height_) * CeilDiv(columns, kPanel) * kParts);
  }

  // What is packed after rows up to `end`; rows that are read where they lie are left to the
  // prefetchers.
  Fetch NextA(const Step& s, const Step& next, int64_t end) const {
    if (!packs_a_) return {};
    if (end < g_.m) return FetchOf(View(g_.a, end, s.k), std::min(group_, g_.m - end), s.depth);
    return next.j < g_.n ? FetchOf(View(g_.a, 0, next.k), group_, next.depth) : Fetch();
  }

  // Rows [i, i + group_).
  void MultiplyGroup(Step s, const Step& next, int64_t i, Fetch& next_b) {
    const int64_t end = std::min(i + group_, g_.m);
    if (packs_a_) PackA(View(g_.a, i, s.k), end - i, height_, s.depth, a_);
    Fetch next_a = NextA(s, next, end);
    s.lines_a = LinesAPart(next_a, end - i, s.columns);
    for (int64_t r = i; r < end; r += height_) {
      Strip strip{a_ + (r - i) / height_ * StripFloats(s.depth), 1};
      if (!packs_a_) strip = {View(g_.a, r, s.k).data, g_.a.row};
      MultiplyStrip(g_, s, r, std::min(height_, end - r), strip, b_, next_a, next_b);
    }
  }

  const GemmF32& g_;
  const int64_t depth_, columns_;
  const int64_t height_, group_;  // rows of a strip, and of the strips that are packed at once
  const bool packs_a_;
  float *const a_, *const b_;
};

void Run(const GemmF32& g, float* scratch) { Product(g, scratch).Run(); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(Run);

bool GemmF32PacksA(bool row_major, Instructions vectors) {
  return vectors == Instructions::kAvx512 || !row_major;
}

int64_t GemmF32Scratch(int64_t n, int64_t k) {
  const int64_t depth = EqualRun(k, kMostDepth, 1);
  return depth * EqualRun(n, kMostColumns, kWidestPanel) + kStrips * (depth + 1) * kLine + kLine;
}

void RunGemmF32(const GemmF32& gemm, float* scratch) { HWY_DYNAMIC_DISPATCH(Run)(gemm, scratch); }

}  // namespace ridge::cpu
#endif

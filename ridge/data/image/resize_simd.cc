// Horizontal: a vector holds the same output pixel of as many rows as it has blocks of 128 bits.
// 16 bytes of a row are five RGB pixels; two shuffles make pairs (R0 R1, G0 G1, B0 B1) and (R2 R3,
// G2 G3, B2 B3) of 16 bits, and a multiply-add of pairs takes two taps for all colours at once.
// Vertical: pairs of rows, as many bytes as a vector holds.
//
// Measured on 500x375 to 224x224: see bench/image_bench.cc.
#include "ridge/core/simd_targets.h"
#include "ridge/data/image/resize_passes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/data/image/resize_simd.cc"
#include <algorithm>
#include <cstring>

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D8 = hn::ScalableTag<uint8_t>;
using D16 = hn::ScalableTag<int16_t>;
using D32 = hn::ScalableTag<int32_t>;
using V8 = hn::Vec<D8>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;

constexpr int64_t kRows = static_cast<int64_t>(hn::MaxLanes(D8()) / 16);  // one a block

// Sums of products with the upper and the lower halves of coefficients.
struct Sums {
  V32 upper, lower;

  HWY_INLINE void Add(V16 pixels, V16 upper_taps, V16 lower_taps) {
    V32 none = hn::Zero(D32());  // on x86 the first sum takes both products of a pair
    upper = hn::ReorderWidenMulAccumulate(D32(), pixels, upper_taps, upper, none);
    lower = hn::ReorderWidenMulAccumulate(D32(), pixels, lower_taps, lower, none);
  }
  HWY_INLINE V32 Rounded() const {
    return hn::ShiftRight<kCoefficientBits>(hn::Add(hn::ShiftLeft<kLowerBits>(upper), lower));
  }
};

HWY_INLINE Sums NoSums() {
  return {hn::Zero(D32()), hn::Set(D32(), 1 << (kCoefficientBits - 1))};  // half: it rounds
}

// 16 bytes of each row, a row a block.
HWY_INLINE V8 LoadRows(const uint8_t* const* rows, int64_t at) {
#if HWY_TARGET == HWY_AVX3
  const hn::Half<D8> half;
  const hn::Half<decltype(half)> block;
  const auto low =
      hn::Combine(half, hn::LoadU(block, rows[1] + at), hn::LoadU(block, rows[0] + at));
  const auto high =
      hn::Combine(half, hn::LoadU(block, rows[3] + at), hn::LoadU(block, rows[2] + at));
  return hn::Combine(D8(), high, low);
#elif HWY_TARGET == HWY_AVX2
  const hn::Half<D8> block;
  return hn::Combine(D8(), hn::LoadU(block, rows[1] + at), hn::LoadU(block, rows[0] + at));
#else
  return hn::LoadU(D8(), rows[0] + at);
#endif
}

// Each block to its row.
HWY_INLINE void StoreRows(V8 bytes, uint8_t* const* rows, int64_t at) {
#if HWY_TARGET == HWY_AVX3
  const hn::Half<D8> half;
  const hn::Half<decltype(half)> block;
  const auto low = hn::LowerHalf(half, bytes), high = hn::UpperHalf(half, bytes);
  hn::StoreU(hn::LowerHalf(block, low), block, rows[0] + at);
  hn::StoreU(hn::UpperHalf(block, low), block, rows[1] + at);
  hn::StoreU(hn::LowerHalf(block, high), block, rows[2] + at);
  hn::StoreU(hn::UpperHalf(block, high), block, rows[3] + at);
#elif HWY_TARGET == HWY_AVX2
  const hn::Half<D8> block;
  hn::StoreU(hn::LowerHalf(block, bytes), block, rows[0] + at);
  hn::StoreU(hn::UpperHalf(block, bytes), block, rows[1] + at);
#else
  hn::StoreU(bytes, D8(), rows[0] + at);
#endif
}

constexpr uint8_t kZero = 0x80;  // a shuffle writes 0 there
alignas(16) constexpr uint8_t kPixels01[16] = {0, kZero, 3, kZero, 1,     kZero, 4,     kZero,
                                               2, kZero, 5, kZero, kZero, kZero, kZero, kZero};
alignas(16) constexpr uint8_t kPixels23[16] = {6, kZero, 9,  kZero, 7,     kZero, 10,    kZero,
                                               8, kZero, 11, kZero, kZero, kZero, kZero, kZero};
// RGB? of four pixels, each as wide as a number, to 12 bytes.
alignas(16) constexpr uint8_t kTight[16] = {0,  1,  2,  4,  5,     6,     8,     9,
                                            10, 12, 13, 14, kZero, kZero, kZero, kZero};

// One column of all rows: R, G, B and nothing.
HWY_INLINE V32 Column(const uint8_t* const* rows, int64_t at, const TapBlock* taps,
                      int64_t blocks) {
  const D16 d16;
  const V8 pixels01 = hn::LoadDup128(D8(), kPixels01), pixels23 = hn::LoadDup128(D8(), kPixels23);
  Sums sums = NoSums();
  for (int64_t b = 0; b < blocks; ++b, at += 3 * kBlockTaps) {
    const V8 bytes = LoadRows(rows, at);
    sums.Add(hn::BitCast(d16, hn::TableLookupBytesOr0(bytes, pixels01)),
             hn::LoadDup128(d16, taps[b].upper01), hn::LoadDup128(d16, taps[b].lower01));
    sums.Add(hn::BitCast(d16, hn::TableLookupBytesOr0(bytes, pixels23)),
             hn::LoadDup128(d16, taps[b].upper23), hn::LoadDup128(d16, taps[b].lower23));
  }
  return sums.Rounded();
}

// Four vectors of 32-bit numbers to bytes, block by block.
HWY_INLINE V8 Narrow(V32 a, V32 b, V32 c, V32 d) {
  const D16 d16;
  const hn::Half<D8> half;
  const V16 ab = hn::ReorderDemote2To(d16, a, b), cd = hn::ReorderDemote2To(d16, c, d);
#if HWY_TARGET == HWY_AVX3
  return V8{_mm512_packus_epi16(ab.raw, cd.raw)};
#elif HWY_TARGET == HWY_AVX2
  return V8{_mm256_packus_epi16(ab.raw, cd.raw)};
#else
  return hn::Combine(D8(), hn::DemoteTo(half, cd), hn::DemoteTo(half, ab));
#endif
}

void Horizontal(const HorizontalPass& pass) {
  const V8 tight = hn::LoadDup128(D8(), kTight);
  for (int64_t y = 0; y < pass.rows; y += kRows) {
    const uint8_t* from[kRows];
    uint8_t* to[kRows];
    for (int64_t r = 0; r < kRows; ++r) {  // behind the last row: the last row again
      const int64_t row = std::min(y + r, pass.rows - 1);
      from[r] = pass.from + row * pass.from_stride;
      to[r] = pass.to + row * pass.to_stride;
    }
    const int64_t blocks = pass.blocks_a_column;
    for (int64_t x = 0; x < pass.columns; x += 4) {
      V32 column[4];
      for (int64_t j = 0; j < 4; ++j)
        column[j] =
            Column(from, 3 * int64_t{pass.first[x + j]}, pass.blocks + (x + j) * blocks, blocks);
      const V8 bytes = Narrow(column[0], column[1], column[2], column[3]);
      StoreRows(hn::TableLookupBytesOr0(bytes, tight), to, 3 * x);
    }
  }
}

// As many 16-bit numbers as a vector holds, of bytes.
HWY_INLINE V16 Widen(const uint8_t* from) {
  const hn::Rebind<uint8_t, D16> narrow;
  return hn::PromoteTo(D16(), hn::LoadU(narrow, from));
}

// The bytes at `at` of an output row.
HWY_INLINE void WeighRows(const VerticalPass& pass, int64_t row, int64_t at, uint8_t* to) {
  const D16 d16;
  const hn::Rebind<uint8_t, D16> narrow;
  const TapPair* pairs = pass.pairs + row * pass.pairs_a_row;
  Sums low = NoSums(), high = NoSums();
  for (int64_t p = 0; p < pass.pairs_a_row; ++p) {
    const int64_t top = pass.first[row] + 2 * p;
    const int64_t next = std::min(top + 1, pass.last_row);
    const V16 a = Widen(pass.from + std::min(top, pass.last_row) * pass.from_stride + at);
    const V16 b = Widen(pass.from + next * pass.from_stride + at);
    const V16 upper = hn::BitCast(d16, hn::Set(D32(), pairs[p].upper));
    const V16 lower = hn::BitCast(d16, hn::Set(D32(), pairs[p].lower));
    low.Add(hn::InterleaveLower(d16, a, b), upper, lower);
    high.Add(hn::InterleaveUpper(d16, a, b), upper, lower);
  }
  const V16 sums = hn::ReorderDemote2To(d16, low.Rounded(), high.Rounded());
  hn::StoreU(hn::DemoteTo(narrow, sums), narrow, to);
}

void Vertical(const VerticalPass& pass) {
  constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(D16()));
  for (int64_t row = 0; row < pass.rows; ++row) {
    uint8_t* to = pass.to + row * pass.to_stride;
    int64_t at = 0;
    for (; at + kStep <= pass.row_bytes; at += kStep) WeighRows(pass, row, at, to + at);
    if (at == pass.row_bytes) continue;
    uint8_t rest[kStep];
    WeighRows(pass, row, at, rest);
    std::memcpy(to + at, rest, static_cast<size_t>(pass.row_bytes - at));
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge {

HWY_EXPORT(Horizontal);
HWY_EXPORT(Vertical);

void RunHorizontalPass(const HorizontalPass& pass) { HWY_DYNAMIC_DISPATCH(Horizontal)(pass); }
void RunVerticalPass(const VerticalPass& pass) { HWY_DYNAMIC_DISPATCH(Vertical)(pass); }

}  // namespace ridge
#endif

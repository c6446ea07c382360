// The search for a code is arithmetic: a comparison for each decade, then the cell within it
// (Decades), so no element waits for loads that depend on it.
#include <algorithm>
#include <cstring>

#include "ridge/backend/cpu/kernels/moment_rows.h"
#include "ridge/backend/cpu/kernels/simd_targets.h"
#include "ridge/graph/ops/shared/moments.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/moment_rows_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/lanes-inl.h"

#ifndef RIDGE_CPU_CODE_TABLES_
#define RIDGE_CPU_CODE_TABLES_
namespace ridge::cpu {

// Decades in f32, as wide as the widest vector.
struct CodeTables {
  alignas(64) float scale[16] = {};
  alignas(64) float unit[16] = {};  // 10^(d-6) by the place's exponent: d + skipped
  float first[kDecades] = {};
  float top = 1, top_rank = 0, skipped = 0;
};

inline CodeTables MakeCodeTables(CodeSigns signs) {
  const Decades& decades = DecadesOf(signs);
  CodeTables tables;
  double unit = 1e-6;
  for (size_t d = 0; d < kDecades; ++d, unit *= 10) {
    tables.scale[d] = static_cast<float>(decades.scale[d]);
    tables.first[d] = static_cast<float>(decades.first[d]);
    tables.unit[d + static_cast<size_t>(decades.skipped)] = static_cast<float>(unit);
  }
  tables.top = static_cast<float>(decades.top);
  tables.top_rank = static_cast<float>(decades.top_rank);
  tables.skipped = static_cast<float>(decades.skipped);
  return tables;
}

inline const CodeTables& TablesOf(CodeSigns signs) {
  static const CodeTables kSigned = MakeCodeTables(CodeSigns::kSigned);
  static const CodeTables kUnsigned = MakeCodeTables(CodeSigns::kUnsigned);
  return signs == CodeSigns::kSigned ? kSigned : kUnsigned;
}

}  // namespace ridge::cpu
#endif  // RIDGE_CPU_CODE_TABLES_

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {

using DI = hn::RebindToSigned<D>;
using DB = hn::Rebind<uint8_t, D>;
using VI = hn::Vec<DI>;
constexpr int64_t kLanes = hn::MaxLanes(D());
static_assert(kCodeBlock % kLanes == 0);

// table[i], i from 0 to 7
HWY_INLINE V Lookup(const float (&table)[16], VI i) {
  const D d;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::TableLookupLanes(hn::Load(d, table), hn::IndicesFromVec(d, i));
#else
  return hn::GatherIndex(d, table, i);
#endif
}

// --- bf16 ----------------------------------------------------------------------------------------

// The upper half of each lane is the number as bf16.
HWY_INLINE VI RoundUpperHalfAtRandom(V x, VI random) {
  const DI d;
  const VI bits = hn::BitCast(d, x);
  const VI quiet = hn::Or(bits, hn::Set(d, 0x400000));
  return hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(x)), quiet, hn::Add(bits, random));
}

template <bool kUpper>
HWY_INLINE VI HalfOf(const uint32_t* words) {
  const DI d;
  const VI word = hn::LoadU(d, reinterpret_cast<const int32_t*>(words));
  const VI lower = hn::Set(d, 0xFFFF);
  return hn::And(kUpper ? hn::ShiftRight<16>(word) : word, lower);
}

template <bool kUpper>
int64_t RoundWhole(const float* from, const uint32_t* words, int64_t count, uint16_t* to) {
  const hn::Rebind<uint16_t, D> narrow;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const VI bits = RoundUpperHalfAtRandom(hn::LoadU(D(), from + i), HalfOf<kUpper>(words + i));
    const auto upper =
        hn::DemoteTo(hn::RebindToSigned<decltype(narrow)>(), hn::ShiftRight<16>(bits));
    hn::StoreU(hn::BitCast(narrow, upper), narrow, to + i);
  }
  return i;
}

int64_t RoundRun(const float* from, const uint32_t* words, bool upper_bits, int64_t count,
                 uint16_t* to) {
  return upper_bits ? RoundWhole<true>(from, words, count, to)
                    : RoundWhole<false>(from, words, count, to);
}

// --- codes ---------------------------------------------------------------------------------------

// The value of a rank above 0.  As floats, rank + skipped + 1/2 is 2^e (1 + f), where e tells the
// decade and f the place in it: 10^(d-6) (0.1 + 0.9 f).  That of the last rank ends at 1.
HWY_INLINE V ValueOfRank(V rank, const CodeTables& t) {
  const D d;
  const DI di;
  const VI bits = hn::BitCast(di, hn::Add(rank, hn::Set(d, t.skipped + 0.5F)));
  const VI exponent = hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, 127));
  const V mantissa = hn::BitCast(
      d, hn::Or(hn::And(bits, hn::Set(di, 0x7FFFFF)), hn::Set(di, 0x3F800000)));
  const V place = hn::MulAdd(mantissa, hn::Set(d, 0.9F), hn::Set(d, -0.8F));
  const V value = hn::Mul(Lookup(t.unit, hn::And(exponent, hn::Set(di, 7))), place);
  return hn::IfThenElse(hn::Eq(rank, hn::Set(d, t.top_rank)), hn::Set(d, 1), value);
}

template <bool kSigned>
HWY_INLINE V Decoded(const uint8_t* codes, const CodeTables& t) {
  const D d;
  const V code = hn::ConvertTo(d, hn::PromoteTo(DI(), hn::LoadU(DB(), codes)));
  const V rank = kSigned ? hn::Sub(code, hn::Set(d, kSignedZero)) : code;
  const V value = ValueOfRank(hn::Abs(rank), t);
  return hn::IfThenZeroElse(hn::Eq(rank, hn::Zero(d)),
                            kSigned ? hn::CopySign(value, rank) : value);
}

template <bool kSigned>
void DecodeBlock(const uint8_t* codes, float absmax, int64_t count, float* to) {
  const CodeTables& t = TablesOf(kSigned ? CodeSigns::kSigned : CodeSigns::kUnsigned);
  for (int64_t i = 0; i < count; i += kLanes)
    hn::StoreU(hn::Mul(Decoded<kSigned>(codes + i, t), hn::Set(D(), absmax)), D(), to + i);
}

// Of x >= 0, where `exact` is what x was before it was scaled.
template <bool kSigned>
HWY_INLINE V RankOf(V x, V exact, const CodeTables& t) {
  const D d;
  const DI di;
  VI decade = hn::Zero(di);
  for (int k = 1; k < kDecades; ++k) {
    const auto reached = hn::Ge(x, hn::Set(d, t.first[k]));
    decade = hn::Sub(decade, hn::VecFromMask(di, hn::RebindMask(di, reached)));
  }
  const VI exponent = hn::Add(decade, hn::Set(di, kSigned ? 127 : 128));
  const V cells = hn::BitCast(d, hn::ShiftLeft<23>(exponent));
  const V skipped = hn::Set(d, t.skipped);
  const V start = hn::Mul(cells, hn::Set(d, 8.0F / 9));
  const V last = hn::Sub(hn::Add(cells, cells), hn::Set(d, 1));
  V rank = hn::Floor(hn::MulAdd(x, Lookup(t.scale, decade), start));
  rank = hn::Sub(hn::Min(rank, last), skipped);
  rank = hn::IfThenElse(hn::Ge(x, hn::Set(d, t.top)), hn::Set(d, t.top_rank), rank);
  if constexpr (kSigned) return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, t.first[0])), rank);
  return hn::IfThenElseZero(hn::Gt(exact, hn::Zero(d)), hn::Max(rank, hn::Set(d, 1)));
}

template <bool kSigned>
HWY_INLINE VI CodeOf(V exact, V absmax, const CodeTables& t) {
  const D d;
  const DI di;
  V rank = RankOf<kSigned>(hn::Div(hn::Abs(exact), absmax), exact, t);
  if constexpr (kSigned) {
    const V below = hn::Neg(hn::Min(rank, hn::Set(d, t.top_rank - 1)));
    rank = hn::IfThenElse(hn::Lt(exact, hn::Zero(d)), below, rank);
    rank = hn::Add(rank, hn::Set(d, kSignedZero));
  }
  const VI code = hn::ConvertTo(di, rank);
  return hn::Min(hn::Max(code, hn::Zero(di)), hn::Set(di, 255));  // of NaN too
}

float LargestMagnitude(const float* from, int64_t count) {
  V largest = hn::Zero(D());
  for (int64_t i = 0; i < count; i += kLanes)
    largest = hn::Max(largest, hn::Abs(hn::LoadU(D(), from + i)));
  return hn::GetLane(hn::MaxOfLanes(D(), largest));
}

template <bool kSigned>
void EncodeBlock(const float* from, float absmax, int64_t count, uint8_t* codes) {
  const CodeTables& t = TablesOf(kSigned ? CodeSigns::kSigned : CodeSigns::kUnsigned);
  for (int64_t i = 0; i < count; i += kLanes) {
    const VI code = CodeOf<kSigned>(hn::LoadU(D(), from + i), hn::Set(D(), absmax), t);
    hn::StoreU(hn::DemoteTo(DB(), code), DB(), codes + i);
  }
}

// Codes of whole vectors.
void DecodeWhole(CodeSigns signs, const uint8_t* codes, float absmax, int64_t count, float* to) {
  return signs == CodeSigns::kSigned ? DecodeBlock<true>(codes, absmax, count, to)
                                     : DecodeBlock<false>(codes, absmax, count, to);
}

float EncodeWhole(CodeSigns signs, const float* from, int64_t count, uint8_t* codes) {
  const float absmax = LargestMagnitude(from, count);
  if (!(absmax > 0)) {
    std::memset(codes, signs == CodeSigns::kSigned ? kSignedZero : 0, static_cast<size_t>(count));
  } else if (signs == CodeSigns::kSigned) {
    EncodeBlock<true>(from, absmax, count, codes);
  } else {
    EncodeBlock<false>(from, absmax, count, codes);
  }
  return absmax;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(RoundRun);
HWY_EXPORT(DecodeWhole);
HWY_EXPORT(EncodeWhole);

void RoundRunAtRandom(const float* from, const uint32_t* words, bool upper_bits, int64_t count,
                      uint16_t* to) {
  int64_t i = HWY_DYNAMIC_DISPATCH(RoundRun)(from, words, upper_bits, count, to);
  for (; i < count; ++i) {
    const uint32_t random = upper_bits ? words[i] >> 16 : words[i] & 0xFFFF;
    to[i] = FloatToBF16(RoundAtRandom(from[i], random));
  }
}

void DecodeRun(CodeSigns signs, const uint8_t* codes, float absmax, int64_t count, float* to) {
  if (count == kCodeBlock) return HWY_DYNAMIC_DISPATCH(DecodeWhole)(signs, codes, absmax, count, to);
  uint8_t padded[kCodeBlock] = {};
  std::copy(codes, codes + count, padded);
  HWY_DYNAMIC_DISPATCH(DecodeWhole)(signs, padded, absmax, kCodeBlock, to);
}

float EncodeRun(CodeSigns signs, float* from, int64_t count, uint8_t* codes) {
  if (count == kCodeBlock) return HWY_DYNAMIC_DISPATCH(EncodeWhole)(signs, from, count, codes);
  std::fill(from + count, from + kCodeBlock, 0.0F);
  uint8_t padded[kCodeBlock];
  const float absmax = HWY_DYNAMIC_DISPATCH(EncodeWhole)(signs, from, kCodeBlock, padded);
  std::copy(padded, padded + count, codes);
  return absmax;
}

}  // namespace ridge::cpu
#endif

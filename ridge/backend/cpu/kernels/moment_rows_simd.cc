// The search for a code is arithmetic: a comparison for each decade, then the cell within it
// (Decades), so no element waits for loads that depend on it.
#include <algorithm>
#include <cstring>
#include <limits>

#include "ridge/backend/cpu/kernels/moment_rows.h"
#include "ridge/core/simd_targets.h"
#include "ridge/graph/ops/shared/moments.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/moment_rows_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/lanes-inl.h"

#ifndef RIDGE_CPU_CODE_TABLES_
#define RIDGE_CPU_CODE_TABLES_
namespace ridge::cpu {

// Decades in f32, as wide as the widest vector; starts are lower by 1/2, for what follows rounds.
// Entry 7 is that of the magnitude 1; in entry 0 one step goes from 0 to the first cell (signed),
// or nothing is below it.
struct CodeTables {
  alignas(64) float scale[16] = {};
  alignas(64) float start[16] = {};
  alignas(64) float last[16] = {};
  alignas(64) float next[16] = {};  // the smallest magnitude of the next entry
  alignas(64) float unit[16] = {};  // 10^(d-6) by the place's exponent less 1: d + skipped - 1
  float top_rank = 0, skipped = 0;
};

inline CodeTables MakeCodeTables(CodeSigns signs) {
  const Decades& decades = DecadesOf(signs);
  const auto f = [](double x) { return static_cast<float>(x); };
  CodeTables t;
  t.top_rank = f(decades.top_rank);
  t.skipped = f(decades.skipped);
  double unit = 1e-6;
  for (size_t d = 0; d < kDecades; ++d, unit *= 10) {
    const int cells = 1 << (static_cast<int>(d) + decades.skipped);
    t.scale[d] = f(decades.scale[d]);
    t.start[d] = f(cells * 8.0 / 9 - decades.skipped - 0.5);
    t.last[d] = f(2 * cells - 1 - decades.skipped);
    t.next[d] = f(d + 1 < kDecades ? decades.first[d + 1] : decades.top);
    t.unit[(d + static_cast<size_t>(decades.skipped) + 7) % 8] = f(unit);
  }
  t.start[kDecades] = t.last[kDecades] = t.top_rank;
  t.next[kDecades] = std::numeric_limits<float>::infinity();
  // Rounded, from 0 to 1 with signs, else from 1 to 2; never below 0.
  const bool with_signs = decades.skipped == 0;
  t.scale[0] = f(with_signs ? 0.5 / decades.first[0] : 0.8 / 0.55e-6);
  t.start[0] = with_signs ? 0 : 0.7F;
  return t;
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

// ElementWord() of `first` and the elements after it, one a lane.
HWY_INLINE VI WordsOf(ElementKey key, int64_t first) {
  const hn::RebindToUnsigned<D> d;
  auto x = hn::Add(hn::Iota(d, 0), hn::Set(d, static_cast<uint32_t>(first) + key.start));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(d, kElementMix1));
  x = hn::Xor(x, hn::Set(d, key.mask));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<13>(x)), hn::Set(d, kElementMix2));
  return hn::BitCast(DI(), hn::Xor(x, hn::ShiftRight<16>(x)));
}

template <bool kUpper>
HWY_INLINE VI HalfOf(VI word) {
  const hn::RebindToUnsigned<D> d;
  if constexpr (kUpper) return hn::BitCast(DI(), hn::ShiftRight<16>(hn::BitCast(d, word)));
  return hn::And(word, hn::Set(DI(), 0xFFFF));
}

template <bool kUpper>
int64_t RoundWhole(const float* from, ElementKey key, int64_t first, int64_t count, uint16_t* to) {
  const hn::Rebind<uint16_t, D> narrow;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const VI bits =
        RoundUpperHalfAtRandom(hn::LoadU(D(), from + i), HalfOf<kUpper>(WordsOf(key, first + i)));
    const auto upper =
        hn::DemoteTo(hn::RebindToSigned<decltype(narrow)>(), hn::ShiftRight<16>(bits));
    hn::StoreU(hn::BitCast(narrow, upper), narrow, to + i);
  }
  return i;
}

int64_t RoundRun(const float* from, ElementKey key, int64_t first, bool upper_bits, int64_t count,
                 uint16_t* to) {
  return upper_bits ? RoundWhole<true>(from, key, first, count, to)
                    : RoundWhole<false>(from, key, first, count, to);
}

// --- codes ---------------------------------------------------------------------------------------

// The value of a rank above 0.  As floats, rank + skipped + 1/2 is 2^e (1 + f), where e tells the
// decade and f the place in it: 10^(d-6) (0.1 + 0.9 f).  That of the last rank ends at 1.
HWY_INLINE V ValueOfRank(V rank, const CodeTables& t) {
  const D d;
  const DI di;
  const VI bits = hn::BitCast(di, hn::Add(rank, hn::Set(d, t.skipped + 0.5F)));
  const VI exponent = hn::And(hn::ShiftRight<23>(bits), hn::Set(di, 7));  // 127 + e: e - 1
  const V mantissa =
      hn::BitCast(d, hn::Or(hn::And(bits, hn::Set(di, 0x7FFFFF)), hn::Set(di, 0x3F800000)));
  const V place = hn::MulAdd(mantissa, hn::Set(d, 0.9F), hn::Set(d, -0.8F));
  const V value = hn::Mul(Lookup(t.unit, exponent), place);
  return hn::IfThenElse(hn::Eq(rank, hn::Set(d, t.top_rank)), hn::Set(d, 1), value);
}

template <bool kSigned>
HWY_INLINE V Decoded(const uint8_t* codes, const CodeTables& t) {
  const D d;
  const V code = hn::ConvertTo(d, hn::PromoteTo(DI(), hn::LoadU(DB(), codes)));
  const V rank = kSigned ? hn::Sub(code, hn::Set(d, kSignedZero)) : code;
  const V value = ValueOfRank(hn::Abs(rank), t);
  return hn::IfThenZeroElse(hn::Eq(rank, hn::Zero(d)), kSigned ? hn::CopySign(value, rank) : value);
}

template <bool kSigned>
void DecodeBlock(const uint8_t* codes, float absmax, int64_t count, float* to) {
  const CodeTables& t = TablesOf(kSigned ? CodeSigns::kSigned : CodeSigns::kUnsigned);
  for (int64_t i = 0; i < count; i += kLanes)
    hn::StoreU(hn::Mul(Decoded<kSigned>(codes + i, t), hn::Set(D(), absmax)), D(), to + i);
}

// Added to a number below 2^22, this rounds it to a whole one, which the lowest bits then hold.
constexpr float kWhole = 0x1p23F;

// A guess at the entry of x: never above it, and at most one below.  The bits of a float, read as
// an integer, are its logarithm but for a little; entries begin within 0.28 above each decade.
HWY_INLINE V EntryBelow(V x) {
  const D d;
  constexpr float kDecadesABit = 0.30103F / (1 << 23);
  constexpr float kAtOne = 1065353216.0F;         // the bits of 1
  const V least = hn::Max(x, hn::Set(d, 7e-7F));  // of entry 0
  const V bits = hn::ConvertTo(d, hn::BitCast(DI(), least));
  const V place = hn::MulAdd(bits, hn::Set(d, kDecadesABit),
                             hn::Set(d, 7 - 0.3F - 0.5F - kAtOne * kDecadesABit));
  return hn::Add(place, hn::Set(d, kWhole));
}

// kWhole more than the rank of x >= 0.
HWY_INLINE V RankOf(V x, const CodeTables& t) {
  const D d;
  const DI di;
  const VI below = hn::And(hn::BitCast(di, EntryBelow(x)), hn::Set(di, 7));
  const auto reached = hn::Ge(x, Lookup(t.next, below));
  const VI entry = hn::Sub(below, hn::VecFromMask(di, hn::RebindMask(di, reached)));
  const V rank = hn::MulAdd(x, Lookup(t.scale, entry), Lookup(t.start, entry));
  return hn::Add(hn::Min(rank, Lookup(t.last, entry)), hn::Set(d, kWhole));
}

// In the lowest byte of each lane.
template <bool kSigned>
HWY_INLINE V CodeOf(V number, V scale, const CodeTables& t) {
  const D d;
  const V whole = hn::Set(d, kWhole);
  const V rank = RankOf(hn::Mul(hn::Abs(number), scale), t);
  if constexpr (!kSigned) return hn::IfThenElse(hn::Gt(number, hn::Zero(d)), rank, whole);
  const V magnitude = hn::CopySign(hn::Sub(rank, whole), number);
  return hn::Max(hn::Add(magnitude, hn::Set(d, kWhole + kSignedZero)), whole);  // -1 is not coded
}

float LargestMagnitude(const float* from, int64_t count) {
  V largest = hn::Zero(D());
  for (int64_t i = 0; i < count; i += kLanes)
    largest = hn::Max(largest, hn::Abs(hn::LoadU(D(), from + i)));
  return hn::GetLane(hn::MaxOfLanes(D(), largest));
}

template <bool kSigned>
void EncodeBlock(const float* from, float scale, int64_t count, uint8_t* codes) {
  const hn::RebindToUnsigned<D> du;
  const CodeTables& t = TablesOf(kSigned ? CodeSigns::kSigned : CodeSigns::kUnsigned);
  for (int64_t i = 0; i < count; i += kLanes) {
    const V code = CodeOf<kSigned>(hn::LoadU(D(), from + i), hn::Set(D(), scale), t);
    hn::StoreU(hn::TruncateTo(DB(), hn::BitCast(du, code)), DB(), codes + i);
  }
}

// 1 / absmax, for numbers so small that it is none after they were made larger.
float ScaleOf(float absmax, int64_t count, float* numbers) {
  constexpr float kLarger = 0x1p100F;
  if (absmax >= 1e-37F) return 1 / absmax;
  for (int64_t i = 0; i < count; ++i) numbers[i] *= kLarger;
  return 1 / (absmax * kLarger);
}

// Codes of whole vectors.
void DecodeWhole(CodeSigns signs, const uint8_t* codes, float absmax, int64_t count, float* to) {
  return signs == CodeSigns::kSigned ? DecodeBlock<true>(codes, absmax, count, to)
                                     : DecodeBlock<false>(codes, absmax, count, to);
}

float EncodeWhole(CodeSigns signs, float* from, int64_t count, uint8_t* codes) {
  const float absmax = LargestMagnitude(from, count);
  if (!(absmax > 0)) {
    std::memset(codes, signs == CodeSigns::kSigned ? kSignedZero : 0, static_cast<size_t>(count));
    return absmax;
  }
  const float scale = ScaleOf(absmax, count, from);
  if (signs == CodeSigns::kSigned) {
    EncodeBlock<true>(from, scale, count, codes);
  } else {
    EncodeBlock<false>(from, scale, count, codes);
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

void RoundRunAtRandom(const float* from, ElementKey key, int64_t first, bool upper_bits,
                      int64_t count, uint16_t* to) {
  int64_t i = HWY_DYNAMIC_DISPATCH(RoundRun)(from, key, first, upper_bits, count, to);
  for (; i < count; ++i) {
    const uint32_t word = ElementWord(key, static_cast<uint32_t>(first + i));
    to[i] = FloatToBF16(RoundAtRandom(from[i], upper_bits ? word >> 16 : word & 0xFFFF));
  }
}

void DecodeRun(CodeSigns signs, const uint8_t* codes, float absmax, int64_t count, float* to) {
  if (count == kCodeBlock)
    return HWY_DYNAMIC_DISPATCH(DecodeWhole)(signs, codes, absmax, count, to);
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

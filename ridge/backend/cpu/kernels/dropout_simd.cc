#include "ridge/backend/cpu/kernels/dropout_draws.h"
#include "ridge/backend/cpu/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/dropout_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<uint64_t>;
using V = hn::Vec<D>;

// The lower 32 bits of each lane times `factor`; upper bits of x are ignored.
HWY_INLINE V Product(V x, uint64_t factor) {
  const hn::RepartitionToNarrow<D> narrow;
  return hn::MulEven(hn::BitCast(narrow, x), hn::BitCast(narrow, hn::Set(D(), factor)));
}

// ridge::Philox with one block a lane.  Only the lower halves of lanes count, so the product's
// upper half need not be cleared.
HWY_INLINE void TenRounds(uint32_t k0, uint32_t k1, V& c0, V& c1, V& c2, V& c3) {
  const D d;
  for (int round = 0; round < 10; ++round) {
    const V p0 = Product(c0, 0xD2511F53), p1 = Product(c2, 0xCD9E8D57);
    c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), hn::Set(d, k0));
    c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), hn::Set(d, k1));
    c1 = p1;
    c3 = p0;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
}

// The key is made as in DrawBlock().
void Draw(const RandomKey& key, uint32_t sample, uint64_t first_block, int64_t blocks,
          uint32_t* words) {
  const D d;
  const uint32_t seed = static_cast<uint32_t>(key.seed) ^ static_cast<uint32_t>(key.seed >> 32);
  const V low = hn::Set(d, 0xFFFFFFFF);
  for (int64_t b = 0; b < blocks; b += static_cast<int64_t>(hn::Lanes(d))) {
    const uint64_t block = first_block + static_cast<uint64_t>(b);
    V c0 = hn::Add(hn::Set(d, block), hn::Iota(d, 0)), c1 = hn::Set(d, block >> 32);
    V c2 = hn::Set(d, sample), c3 = hn::Set(d, key.step);
    TenRounds(seed, key.stream, c0, c1, c2, c3);
    const V first = hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1));
    const V second = hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3));
    hn::StoreInterleaved2(first, second, d, reinterpret_cast<uint64_t*>(words + 4 * b));
  }
}

void Keep(double* values, const uint32_t* words, int64_t count, double rate, double divisor) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<int32_t, decltype(d)> di;
  const hn::Rebind<uint32_t, decltype(d)> du;
  const auto least = hn::Set(d, rate * 0x1p24);  // exact, as is every word / 256
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hn::Lanes(d))) {
    const auto word = hn::BitCast(di, hn::ShiftRight<8>(hn::LoadU(du, words + i)));
    const auto kept = hn::Div(hn::LoadU(d, values + i), hn::Set(d, divisor));
    hn::StoreU(hn::IfThenElseZero(hn::Ge(hn::PromoteTo(d, word), least), kept), d, values + i);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(Draw);
HWY_EXPORT(Keep);

void DrawWords(const RandomKey& key, uint32_t sample, uint64_t first_block, int64_t blocks,
               uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(Draw)(key, sample, first_block, blocks, words);
}
void KeepOrDrop(double* values, const uint32_t* words, int64_t count, double rate, double divisor) {
  HWY_DYNAMIC_DISPATCH(Keep)(values, words, count, rate, divisor);
}

}  // namespace ridge::cpu
#endif

// Random words of elements, for rounding: a hash of the element's number under a key of Philox.
//
// A Philox block an element costs more than the whole update that it rounds (1.25 ns of a Zen 3
// core; this 0.1).  Rounding needs words that are even and that differ from update to update: the
// key is drawn anew in each, and the finalizer of MurmurHash3 spreads the elements.
#pragma once
#include <cstdint>

#include "ridge/core/random.h"

namespace ridge {

struct ElementKey {
  uint32_t start = 0, mask = 0;
};

inline ElementKey ElementKeyOf(const RandomKey& key) {
  const auto block = DrawBlock(key, /*sample=*/0, /*block=*/0);
  return {block[0], block[1]};
}

inline constexpr uint32_t kElementMix1 = 0x85EBCA6B, kElementMix2 = 0xC2B2AE35;

// `element` counts modulo 2^32.
inline uint32_t ElementWord(ElementKey key, uint32_t element) {
  uint32_t x = element + key.start;
  x = (x ^ (x >> 16)) * kElementMix1 ^ key.mask;
  x = (x ^ (x >> 13)) * kElementMix2;
  return x ^ (x >> 16);
}

}  // namespace ridge

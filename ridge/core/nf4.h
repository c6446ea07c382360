// NF4: floats in 4 bits each, with a scale for each block of 64.
//
// Dettmers et al., "QLoRA: Efficient Finetuning of Quantized LLMs", 2023: the 16 values are
// quantiles of a normal distribution, which weights resemble, divided by the largest; 0 is one of
// them.  Two codes share a byte, the first in its high half.  A scale is bf16: 4.25 bits a number.
#pragma once
#include <cstdint>
#include <span>

#include "ridge/core/rounding.h"

namespace ridge {

inline constexpr int64_t kNf4Block = 64;

// Bytes of the codes, and number of scales, of so many floats.
inline int64_t Nf4CodeBytes(int64_t count) { return CeilDiv(count, int64_t{2}); }
inline int64_t Nf4ScaleCount(int64_t count) { return CeilDiv(count, kNf4Block); }

// The 16 values, ascending, from -1 to 1.
std::span<const float, 16> Nf4Values();

// The scale of a block, as the bits of a bf16: the largest magnitude, rounded.  NaN where the block
// has one.  REQUIRES: at most kNf4Block floats.
uint16_t Nf4Scale(std::span<const float> block);

// The codes of a block, by the nearest of scale * Nf4Values(), the lower one of two that are as
// near.  The half of a byte that no float has is the code of 0.
void EncodeNf4(std::span<const float> block, uint16_t scale, uint8_t* codes);

// The code of element i.
inline int Nf4Code(const uint8_t* codes, int64_t i) {
  return i % 2 == 0 ? codes[i / 2] >> 4 : codes[i / 2] & 15;
}

}  // namespace ridge

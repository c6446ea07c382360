// Runs of an optimizer's moment between the forms of moments.h and f32, vectorized.
#pragma once
#include <cstdint>

#include "ridge/graph/ops/shared/dynamic_code.h"
#include "ridge/graph/ops/shared/element_words.h"

namespace ridge::cpu {

// bf16, by RoundAtRandom() with one half of the word of each element, of which the first is
// `first`.
void RoundRunAtRandom(const float* from, ElementKey key, int64_t first, bool upper_bits,
                      int64_t count, uint16_t* to);

// One block of codes.  REQUIRES: 0 < count <= kCodeBlock; the floats reach to the block's end,
// where what is behind `count` is any number.
void DecodeRun(CodeSigns signs, const uint8_t* codes, float absmax, int64_t count, float* to);
// Its absmax.  The floats are not kept.
float EncodeRun(CodeSigns signs, float* from, int64_t count, uint8_t* codes);

}  // namespace ridge::cpu

// Philox words for dropout, several blocks at a time, and their use on a tile of doubles.
#pragma once
#include <cstdint>

#include "ridge/core/random.h"

namespace ridge::cpu {

inline constexpr int64_t kDrawPadding = 32;  // words that DrawWords may write past the last

// Words of the blocks [first_block, first_block + blocks), as DrawBlock() gives them.
// REQUIRES: no multiple of 2^32 lies inside; room for 4 * blocks + kDrawPadding words.
void DrawWords(const RandomKey& key, uint32_t sample, uint64_t first_block, int64_t blocks,
               uint32_t* words);

// values[i] = ToUniform(words[i]) >= rate ? values[i] / divisor : 0
// REQUIRES: both arrays reach to the next multiple of 8 elements.
void KeepOrDrop(double* values, const uint32_t* words, int64_t count, double rate, double divisor);

}  // namespace ridge::cpu

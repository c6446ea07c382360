// What dropout does with a tile of doubles and its random words.
#pragma once
#include <cstdint>

namespace ridge::cpu {

// values[i] = ToUniform(words[i]) >= rate ? values[i] / divisor : 0
// REQUIRES: both arrays reach to the next multiple of 8 elements.
void KeepOrDrop(double* values, const uint32_t* words, int64_t count, double rate, double divisor);

}  // namespace ridge::cpu

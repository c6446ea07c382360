// f32 to 16 bits and back, many at a time, in the bits of core/dtype.h: to nearest, ties to even.
// No alignment is asked for; the two do not overlap.
#pragma once
#include <cstdint>

namespace ridge {

void FloatsToBF16(const float* from, uint16_t* to, int64_t count);
void FloatsToF16(const float* from, uint16_t* to, int64_t count);
void BF16ToFloats(const uint16_t* from, float* to, int64_t count);

}  // namespace ridge

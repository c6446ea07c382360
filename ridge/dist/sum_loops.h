// The loops over f32 behind dist/sum_block.h.  No alignment is asked for.
#pragma once
#include <cstdint>

namespace ridge {

// to[i] = a[i] + b[i].  `to` may be `a` or `b`.
void AddFloats(const float* a, const float* b, float* to, int64_t count);
// The same of numbers that are rounded to bf16 before and behind; to nearest, ties to even.
void AddRoundedFloats(const float* a, const float* b, float* to, int64_t count);

}  // namespace ridge

// Cross entropy over rows of f32 logits, vectorized; the whole row stays in cache between passes.
#pragma once
#include <cstdint>

namespace ridge::cpu {

// log(sum(exp(x))) - x[label]
float CrossEntropyRow(const float* logits, int64_t classes, int64_t label);

// dlogits = (softmax(logits) - one_hot(label)) * dloss; dlogits may be logits.
void CrossEntropyGradRow(const float* logits, int64_t classes, int64_t label, float dloss,
                         float* dlogits);

// Rows of few classes, such as pixels', are too short for a vector each: they lie side by side.
inline constexpr int64_t kFewClasses = 8, kRowsAtOnce = 16;

struct ShortRows {
  float max[kRowsAtOnce];
  float sum[kRowsAtOnce];                 // of the terms
  float terms[kFewClasses][kRowsAtOnce];  // exp(x - max)
};

// REQUIRES: 1 <= rows <= kRowsAtOnce, 1 <= classes <= kFewClasses.
void ExponentiateShortRows(const float* logits, int64_t rows, int64_t classes, ShortRows& result);

}  // namespace ridge::cpu

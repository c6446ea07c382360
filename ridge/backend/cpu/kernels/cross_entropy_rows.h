// Cross entropy over rows of f32 logits, vectorized; the whole row stays in cache between passes.
#pragma once
#include <cstdint>

namespace ridge::cpu {

// log(sum(exp(x))) - x[label]
float CrossEntropyRow(const float* logits, int64_t classes, int64_t label);

// dlogits = (softmax(logits) - one_hot(label)) * dloss; dlogits may be logits.
void CrossEntropyGradRow(const float* logits, int64_t classes, int64_t label, float dloss,
                         float* dlogits);

}  // namespace ridge::cpu

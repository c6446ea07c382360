// The law of precision: gradients in another dtype, near those of f64.
#pragma once
#include "tests/generate/check.h"

namespace ridge {

// The graph with `dtype` in the place of f64; where an operator takes f32 alone, casts stand around
// it, and with `mixed` around some of the others.
Result<Graph> Retyped(const Graph& forward, DType dtype, bool mixed, uint64_t seed);

// Puts what is wrong into `judgement`.
Status CheckPrecision(const Graph& forward, uint64_t seed, const Machine& machine,
                      GraphJudgement& judgement);

}  // namespace ridge

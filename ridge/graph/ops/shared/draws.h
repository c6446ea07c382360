// What the operators that draw numbers share: random_uniform and random_normal.
//
// Input 0, rng, is i64[3] = seed, step, first sample.  Dimension 0 of the output counts samples;
// element i of sample s is word (or normal number) i of the stream (seed, `stream`, step, s), so
// another split of the batch draws the same.
#pragma once
#include "ridge/core/random.h"
#include "ridge/graph/axes.h"
#include "ridge/graph/op_def.h"

namespace ridge {

// Checks rng, `dims` and `dtype` (a float); the output is `dims` of `dtype`.
Result<std::vector<TensorType>> InferDraws(const OpCall& call);

// Fails unless the attribute is finite.
Status CheckFinite(const OpCall& call, const char* name);

// `flops` an element; the integer work of Philox is not counted.
Cost DrawsCost(const OpCall& call, int64_t flops);

// `dims`, `dtype` and `stream`.
AttrMap DrawAttrs();

// Dimension 0 of the output, which rng knows without having it.
Axes DrawnAxes(const OpCall& call);

// Calls visit(index, key, sample, i) for element i of each sample, in order.
template <typename Visit>
void ForEachDraw(const OpCall& call, const double* rng, Visit visit) {
  const TensorType& y = call.outputs[0];
  const int64_t samples = y.rank() == 0 ? 1 : y.dims[0];
  const int64_t width = samples == 0 ? 0 : y.elements() / samples;
  const RandomKey key{.seed = static_cast<uint64_t>(rng[0]),
                      .stream = static_cast<uint32_t>(call.integer("stream")),
                      .step = static_cast<uint32_t>(static_cast<int64_t>(rng[1]))};
  const auto first = static_cast<int64_t>(rng[2]);
  for (int64_t s = 0; s < samples; ++s) {
    const auto sample = static_cast<uint32_t>(first + s);
    for (int64_t i = 0; i < width; ++i) visit(s * width + i, key, sample, i);
  }
}

}  // namespace ridge

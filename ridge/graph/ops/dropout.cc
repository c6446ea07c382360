// dropout: y = x * keep / (1 - rate), where each element is kept with probability 1 - rate.
//
// Nothing is stored: the mask is a pure function of (seed, stream, step, global sample, index in
// the sample), so the gradient, a recomputation, a resumed run and another split of the batch draw
// the same one.
#include <algorithm>
#include <array>

#include "ridge/core/random.h"
#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

// x: float, any shape.  rng: i64[3] = seed, step, first_sample.  y: the type of x.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  RIDGE_RETURN_IF_ERROR(
      CheckType(call, 1, "rng", {DType::kI64, {3}}, "seed, step and first_sample"));
  RIDGE_RETURN_IF_ERROR(CheckNumber(call, "rate", 1));
  return std::vector<TensorType>{call.inputs[0]};
}

// Per element: compare and multiply; the integer work of Philox is not counted.
Cost EstimateCost(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  return {.flops = 2 * x.elements(),
          .bytes_read = x.bytes() + call.inputs[1].bytes(),
          .bytes_written = x.bytes()};
}

// dx = dy * keep / (1 - rate), with the same draws.
void Gradient(GradBuilder& g) { g.dx() = Op("dropout", {g.dy(), g.x(1)}, g.attrs()); }

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const TensorType& x = call.inputs[0];
  const double rate = call.number("rate");
  const int64_t samples = x.rank() == 0 ? 1 : x.dims[0];
  const int64_t width = x.elements() / std::max<int64_t>(samples, 1);
  const RandomKey key{.seed = static_cast<uint64_t>(in[1][0]),
                      .stream = static_cast<uint32_t>(call.integer("stream")),
                      .step = static_cast<uint32_t>(static_cast<int64_t>(in[1][1]))};
  const auto first_sample = static_cast<int64_t>(in[1][2]);
  for (int64_t b = 0; b < samples; ++b) {
    std::array<uint32_t, 4> words{};
    for (int64_t i = 0; i < width; ++i) {
      if (i % 4 == 0) {
        words =
            DrawBlock(key, static_cast<uint32_t>(first_sample + b), static_cast<uint64_t>(i / 4));
      }
      const bool keep = double{ToUniform(words[static_cast<size_t>(i % 4)])} >= rate;
      out[0][b * width + i] = keep ? in[0][b * width + i] / (1 - rate) : 0;
    }
  }
}

}  // namespace

OpDef DropoutDef() {
  return {
      .name = "dropout",
      .doc =
          "y = x / (1 - rate) where kept, else 0. rng i64[3] holds seed (0 to 2^53), step and "
          "the global number of the first sample of x (dimension 0). Element i of sample b is "
          "kept when word i of the Philox stream (seed, `stream`, step, first_sample + b), as a "
          "number in [0,1), is at least `rate`. The gradient draws the same numbers again.",
      .input_names = {"x", "rng"},
      .output_names = {"y"},
      .attr_defaults = {{"rate", 0.5}, {"stream", 0}},
      .cost_class = CostClass::kElementwise,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .gradient = Gradient,
      .no_gradient_inputs = {1},
      .in_place = {{0, 0}},
      .recompute = Recompute::kCheap,
      .onnx = {"Dropout"},
      .axes = FirstAxis,
      .draws = true,
      .reference = Reference,
  };
}

}  // namespace ridge

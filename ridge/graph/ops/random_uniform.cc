// random_uniform: y = low + (high - low) * u, with u drawn from [0, 1).
#include <fmt/format.h>

#include "ridge/graph/ops/shared/draws.h"

namespace ridge {
namespace {

// rng: i64[3] = seed, step, first_sample.  y: `dims` of `dtype`.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFinite(call, "low"));
  RIDGE_RETURN_IF_ERROR(CheckFinite(call, "high"));
  if (call.number("low") <= call.number("high")) return InferDraws(call);
  return CallError(call, fmt::format("low is {}; it must be at most high, {}", call.number("low"),
                                     call.number("high")));
}

Cost EstimateCost(const OpCall& call) { return DrawsCost(call, 2); }

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const double low = call.number("low"), width = call.number("high") - low;
  std::array<uint32_t, 4> words{};
  ForEachDraw(call, in[0], [&](int64_t index, const RandomKey& key, uint32_t sample, int64_t i) {
    if (i % 4 == 0) words = DrawBlock(key, sample, static_cast<uint64_t>(i / 4));
    out[0][index] = low + width * double{ToUniform(words[static_cast<size_t>(i % 4)])};
  });
}

AttrMap Attrs() {
  AttrMap attrs = DrawAttrs();
  attrs["low"] = 0.0;
  attrs["high"] = 1.0;
  return attrs;
}

}  // namespace

OpDef RandomUniformDef() {
  return {
      .name = "random_uniform",
      .doc =
          "Numbers drawn evenly from [low, high), of shape `dims` and the float `dtype`. rng "
          "i64[3] holds seed (0 to 2^53), step and the global number of the first sample "
          "(dimension 0). Element i of sample s is word i of the Philox stream (seed, `stream`, "
          "step, first_sample + s).",
      .input_names = {"rng"},
      .output_names = {"y"},
      .attr_defaults = Attrs(),
      .required_attrs = {"dims"},
      .cost_class = CostClass::kElementwise,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .recompute = Recompute::kCheap,
      .onnx = {"RandomUniform"},
      .axes = DrawnAxes,
      .dims_attr = "dims",
      .draws = true,
      .reference = Reference,
  };
}

}  // namespace ridge

// random_normal: y = mean + scale * z, with z drawn from the standard normal distribution.
#include <fmt/format.h>

#include "ridge/graph/ops/shared/draws.h"

namespace ridge {
namespace {

// rng: i64[3] = seed, step, first_sample.  y: `dims` of `dtype`.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFinite(call, "mean"));
  RIDGE_RETURN_IF_ERROR(CheckFinite(call, "scale"));
  if (call.number("scale") >= 0) return InferDraws(call);
  return CallError(call, fmt::format("scale is {}; it must be at least 0", call.number("scale")));
}

// Logarithm, root, sine or cosine, and two for mean and scale.
Cost EstimateCost(const OpCall& call) { return DrawsCost(call, 6); }

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const double mean = call.number("mean"), scale = call.number("scale");
  std::array<double, 4> numbers{};
  ForEachDraw(call, in[0], [&](int64_t index, const RandomKey& key, uint32_t sample, int64_t i) {
    if (i % 4 == 0) numbers = DrawNormalBlock(key, sample, static_cast<uint64_t>(i / 4));
    out[0][index] = mean + scale * numbers[static_cast<size_t>(i % 4)];
  });
}

AttrMap Attrs() {
  AttrMap attrs = DrawAttrs();
  attrs["mean"] = 0.0;
  attrs["scale"] = 1.0;
  return attrs;
}

}  // namespace

OpDef RandomNormalDef() {
  return {
      .name = "random_normal",
      .doc =
          "Normal numbers of mean `mean` and standard deviation `scale`, of shape `dims` and the "
          "float `dtype`. rng i64[3] holds seed (0 to 2^53), step and the global number of the "
          "first sample (dimension 0). Element i of sample s is normal number i of the Philox "
          "stream (seed, `stream`, step, first_sample + s).",
      .input_names = {"rng"},
      .output_names = {"y"},
      .attr_defaults = Attrs(),
      .required_attrs = {"dims"},
      .cost_class = CostClass::kElementwise,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .recompute = Recompute::kCheap,
      .onnx = {"RandomNormal"},
      .axes = DrawnAxes,
      .dims_attr = "dims",
      .draws = true,
      .reference = Reference,
  };
}

}  // namespace ridge

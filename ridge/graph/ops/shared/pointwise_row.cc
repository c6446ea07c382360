#include "ridge/graph/ops/shared/pointwise_row.h"

#include <array>
#include <utility>

namespace ridge {
namespace {

using CostOf = Cost (*)(const OpCall&);

template <int64_t... kFlops>
constexpr std::array<CostOf, sizeof...(kFlops)> CostsUpTo(
    std::integer_sequence<int64_t, kFlops...>) {
  return {PointwiseCost<kFlops>...};
}
// By flops of an element.
constexpr auto kCosts = CostsUpTo(std::make_integer_sequence<int64_t, 17>());

OpDef OpOf(const PointwiseRow& row) {
  OpDef op = {
      .name = row.name,
      .doc = row.doc,
      .output_names = {row.output},
      .infer_types = row.types,
      .cost = kCosts.at(static_cast<size_t>(row.flops)),
      .gradient = row.gradient,
      .recompute = Recompute::kCheap,
      .onnx = row.onnx,
      .pattern = row.pattern,
      .linear = row.linear,
      .elementwise = row.function,
  };
  for (int i = 0; i < 2 && row.inputs[i] != nullptr; ++i) {
    op.input_names.emplace_back(row.inputs[i]);
    if (row.in_place) op.in_place.emplace_back(0, i);
  }
  for (const NumberAttr& attr : row.attrs) {
    if (attr.name != nullptr) op.attr_defaults[attr.name] = attr.value;
  }
  if (row.no_gradient_input >= 0) op.no_gradient_inputs = {row.no_gradient_input};
  return op;
}

}  // namespace

std::vector<OpDef> OpsOf(std::span<const PointwiseRow> rows) {
  std::vector<OpDef> ops;
  for (const PointwiseRow& row : rows) ops.push_back(OpOf(row));
  return ops;
}

}  // namespace ridge

// transpose: dimension d of y is dimension permutation[d] of x.
#include <fmt/format.h>

#include <numeric>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/elementwise.h"
#include "ridge/graph/ops/shared/strided.h"

namespace ridge {
namespace {

// An empty list reverses all dimensions, as in ONNX.
std::vector<int64_t> Permutation(const std::vector<int64_t>& given, int rank) {
  if (!given.empty()) return given;
  std::vector<int64_t> reversed(static_cast<size_t>(rank));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return reversed;
}

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  const std::vector<int64_t> permutation = Permutation(call.integers("permutation"), x.rank());
  std::vector<bool> seen(x.dims.size(), false);
  Dims dims;
  for (int64_t from : permutation) {
    if (from < 0 || from >= x.rank() || seen[static_cast<size_t>(from)]) break;
    seen[static_cast<size_t>(from)] = true;
    dims.push_back(x.dims[static_cast<size_t>(from)]);
  }
  if (dims.size() != x.dims.size() || permutation.size() != dims.size()) {
    return CallError(call, fmt::format("permutation is {}, x is {}; each of 0 to {} must be there "
                                       "once",
                                       DimsToString(permutation), TypeToString(x), x.rank() - 1));
  }
  return std::vector<TensorType>{{x.dtype, std::move(dims)}};
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const TensorType& x = call.inputs[0];
  const Dims own = RowMajorStrides(x.dims);
  Dims strides;
  for (int64_t from : Permutation(call.integers("permutation"), x.rank()))
    strides.push_back(own[static_cast<size_t>(from)]);
  ForEachStrided(call.outputs[0].dims, strides, 0,
                 [&](int64_t i, int64_t at) { out[0][i] = in[0][at]; });
}

// dx = dy transposed by the inverse permutation.
void Gradient(GradBuilder& g) {
  const auto rank = static_cast<int>(g.x().dims().size());
  const std::vector<int64_t> permutation = Permutation(g.integers("permutation"), rank);
  std::vector<int64_t> inverse(permutation.size());
  for (size_t d = 0; d < permutation.size(); ++d)
    inverse[static_cast<size_t>(permutation[d])] = static_cast<int64_t>(d);
  g.dx() = Transpose(g.dy(), inverse);
}

Axes FindAxes(const OpCall& call) {
  Axes axes;
  for (int64_t from : Permutation(call.integers("permutation"), call.inputs[0].rank()))
    axes.push_back(Mapped(call, {static_cast<int>(from)}, static_cast<int>(axes.size())));
  return axes;
}

}  // namespace

OpDef TransposeDef() {
  return {
      .name = "transpose",
      .doc = "y's dimension d is x's dimension permutation[d]. An empty permutation reverses them.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"permutation", {}}},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .gradient = Gradient,
      .recompute = Recompute::kCheap,
      .onnx = {"Transpose", 1, 13, 1, 1},
      .axes = FindAxes,
      .linear = Linear::kJointly,
      .reference = Reference,
  };
}

}  // namespace ridge

// reshape: y = the elements of x, in order, under other dims.  No kernel runs: y is x's bytes.
#include <fmt/format.h>

#include <numeric>

#include "ridge/graph/axes.h"
#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

// 0 replaced by x's extent at that place, -1 by 1; checked against overflow.
Result<Dims> ResolveCopies(const OpCall& call) {
  const Dims& x = call.inputs[0].dims;
  Dims dims = call.integers("dims");
  int inferred = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == -1) {
      ++inferred;
      dims[d] = 1;
    } else if (dims[d] == 0 && call.integer("allow_zero") == 0) {
      if (d >= x.size()) {
        return CallError(call, fmt::format("dims is {}: its 0 at place {} copies an extent, and x "
                                           "is {} with rank {}",
                                           DimsToString(call.integers("dims")), d,
                                           TypeToString(call.inputs[0]), x.size()));
      }
      dims[d] = x[d];
    }
  }
  if (inferred > 1) {
    return CallError(call, fmt::format("dims is {}; at most one extent may be -1",
                                       DimsToString(call.integers("dims"))));
  }
  if (Status status = CheckDims(dims); !status.ok()) return CallError(call, status.message());
  return dims;
}

Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  const Dims& given = call.integers("dims");
  RIDGE_ASSIGN_OR_RETURN(Dims dims, ResolveCopies(call));
  const int64_t known = ElementCount(dims);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (given[d] != -1) continue;
    if (known == 0 || x.elements() % known != 0) {
      return CallError(call,
                       fmt::format("dims is {}: its -1 can't be found, {} elements of x {} "
                                   "are not a multiple of {}",
                                   DimsToString(given), x.elements(), TypeToString(x), known));
    }
    dims[d] = x.elements() / known;
  }
  if (ElementCount(dims) != x.elements()) {
    return CallError(
        call, fmt::format("dims is {} with {} elements, x is {} with {}; they must be "
                          "equal",
                          DimsToString(given), ElementCount(dims), TypeToString(x), x.elements()));
  }
  return std::vector<TensorType>{{x.dtype, std::move(dims)}};
}

Cost NoCost(const OpCall&) { return {}; }

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  std::copy_n(in[0], call.outputs[0].elements(), out[0]);
}

// dx = dy under x's dims.
void Gradient(GradBuilder& g) {
  const Dims dims = g.x().dims();
  g.dx() = ReshapeExactly(g.dy(), dims);
}

// Dimensions of x and y before which the same number of elements lies begin together: a part of one
// is a part of the other.  An extent of 1 has no parts, and goes with another of 1 only; where
// there are no elements, only equal extents say the same.
Axes FindAxes(const OpCall& call) {
  const Dims &x = call.inputs[0].dims, &y = call.outputs[0].dims;
  const bool empty = call.inputs[0].elements() == 0;
  const auto alike = [&](int64_t a, int64_t b) { return empty ? a == b : (a == 1) == (b == 1); };
  Axes axes;
  int64_t x_before = 1;
  for (size_t from = 0; from < x.size() && x_before > 0; x_before *= x[from++]) {
    int64_t y_before = 1;
    for (size_t to = 0; to < y.size() && y_before <= x_before; y_before *= y[to++]) {
      if (y_before == x_before && alike(x[from], y[to]))
        axes.push_back(Mapped(call, {static_cast<int>(from)}, static_cast<int>(to)));
    }
  }
  return axes;
}

// The dimensions of a shape from the outermost to the innermost, taken off factor by factor.
struct Digits {
  const Dims* dims;
  size_t at = 0;
  int64_t blocks = 1;  // taken off the dimension `at`

  // What is left of a dimension that is not used up.
  int64_t Left() {
    while (at < dims->size() && (*dims)[at] == blocks) ++at, blocks = 1;
    return at < dims->size() ? (*dims)[at] / blocks : 1;
  }
};

// The indices that both shapes consist of, inner ones too: [6, 4] -> [3, 8] has 3, 2 and 4.  Where
// the rest of both dimensions has no common factor, what lies before the next dimension that begins
// in both is whole.
Axes FindSharedAxes(const OpCall& call) {
  const Dims &x = call.inputs[0].dims, &y = call.outputs[0].dims;
  if (call.inputs[0].elements() == 0) return FindAxes(call);
  Axes axes;
  Digits from{&x}, to{&y};
  while (true) {
    const int64_t common = std::gcd(from.Left(), to.Left());
    if (from.at == x.size() || to.at == y.size()) return axes;
    if (common == 1) {  // to where as many elements of both are behind
      int64_t left_x = from.Left(), left_y = to.Left();
      while (left_x != left_y) {
        if (left_x < left_y) {
          left_x *= x[++from.at];
        } else {
          left_y *= y[++to.at];
        }
      }
      from = {&x, from.at + 1}, to = {&y, to.at + 1};
      continue;
    }
    Factor factor = Mapped(call, {static_cast<int>(from.at)}, static_cast<int>(to.at));
    factor.input_blocks = {from.blocks};
    factor.output_blocks = {to.blocks};
    factor.extent = common;
    axes.push_back(std::move(factor));
    from.blocks *= common, to.blocks *= common;
  }
}

}  // namespace

OpDef ReshapeDef() {
  return {
      .name = "reshape",
      .doc =
          "y = the elements of x in order under `dims`. One extent may be -1: what is left. 0 "
          "copies x's extent at that place, or means 0 when allow_zero=1.",
      .input_names = {"x"},
      .output_names = {"y"},
      .attr_defaults = {{"dims", {}}, {"allow_zero", 0}},
      .required_attrs = {"dims"},
      .cost_class = CostClass::kMove,
      .infer_types = InferTypes,
      .cost = NoCost,
      .gradient = Gradient,
      .in_place = {{0, 0}},
      .alias_input = 0,
      .recompute = Recompute::kCheap,
      .onnx = {"Reshape", 5, 13, 5, 5},
      .axes = FindAxes,
      .shared_axes = FindSharedAxes,
      .linear = Linear::kJointly,
      .dims_attr = "dims",
      .reference = Reference,
  };
}

}  // namespace ridge

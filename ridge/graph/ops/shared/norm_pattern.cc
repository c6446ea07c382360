// d = x - mean(x);  n = d / sqrt(mean(d^2) + epsilon)    -> layer_norm(x)
// n * scale                                              -> layer_norm(x, scale)
// n * scale + shift                                      -> layer_norm(x, scale, shift)
// x / sqrt(mean(x^2) + epsilon)                          -> rms_norm(x), with a scale likewise
//
// The means are over the last dimensions.  A quotient may be a product with rsqrt or reciprocal, a
// square a product or a power, and d may be computed twice.
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/norm.h"
#include "ridge/graph/pattern.h"

namespace ridge {
namespace {

// The first axis of a mean over the last dimensions that keeps them as 1, else -1.
int64_t TrailingAxis(const Graph& graph, const Node& mean) {
  const int rank = graph.type(mean.inputs[0]).rank();
  const auto& axes = mean.attrs.integers("axes");
  if (mean.attrs.integer("keep_dims") != 1 || axes.empty()) return -1;
  std::vector<bool> reduced(static_cast<size_t>(rank), false);
  for (int64_t axis : axes) reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  for (size_t d = reduced.size() - axes.size(); d < reduced.size(); ++d) {
    if (!reduced[d]) return -1;
  }
  return rank - static_cast<int64_t>(axes.size());
}

// The base of x^2, x * x or square(x); else kNoValue.
ValueId BaseOfSquare(const Graph& graph, ValueId id) {
  const Node* node = graph.producer(id);
  if (node == nullptr) return kNoValue;
  const std::string& op = node->op->name;
  const bool square = op == "square" || (op == "mul" && node->inputs[0] == node->inputs[1]) ||
                      (op == "pow" && SplatOf(graph, node->inputs[1]) == 2.0);
  return square ? node->inputs[0] : kNoValue;
}

struct Centered {
  ValueId x = kNoValue, mean = kNoValue;
  int64_t axis = -1;
};

// x - mean(x)
Centered MatchCentered(const Graph& graph, ValueId id) {
  const Node* sub = graph.producer(id, "sub");
  if (sub == nullptr) return {};
  const Node* mean = graph.producer(sub->inputs[1], "reduce_mean");
  if (mean == nullptr || mean->inputs[0] != sub->inputs[0]) return {};
  const int64_t axis = TrailingAxis(graph, *mean);
  if (axis < 0) return {};
  return {sub->inputs[0], sub->inputs[1], axis};
}

// d and what it is divided by: id = sqrt(..) after a division, or rsqrt(..) after a product.
struct Quotient {
  ValueId numerator = kNoValue;
  ValueId under_root = kNoValue;
  std::vector<ValueId> inner;
};

// rsqrt(v) or reciprocal(sqrt(v)), as v.
ValueId UnderInverseRoot(const Graph& graph, ValueId id, std::vector<ValueId>& inner) {
  inner = {id};
  if (const Node* rsqrt = graph.producer(id, "rsqrt")) return rsqrt->inputs[0];
  const Node* reciprocal = graph.producer(id, "reciprocal");
  if (reciprocal == nullptr) {
    reciprocal = graph.producer(id, "div");
    if (reciprocal == nullptr || SplatOf(graph, reciprocal->inputs[0]) != 1.0) return kNoValue;
  }
  const ValueId root = reciprocal->inputs.back();
  const Node* sqrt = graph.producer(root, "sqrt");
  inner.push_back(root);
  return sqrt == nullptr ? kNoValue : sqrt->inputs[0];
}

Quotient MatchQuotient(const Graph& graph, const Node& node) {
  if (node.op->name == "div") {
    const Node* sqrt = graph.producer(node.inputs[1], "sqrt");
    if (sqrt == nullptr) return {};
    return {node.inputs[0], sqrt->inputs[0], {node.inputs[1]}};
  }
  if (node.op->name != "mul") return {};
  for (size_t i = 0; i < 2; ++i) {
    std::vector<ValueId> inner;
    const ValueId under = UnderInverseRoot(graph, node.inputs[1 - i], inner);
    if (under != kNoValue) return {node.inputs[i], under, inner};
  }
  return {};
}

// The mean of squares and epsilon of mean + epsilon.
struct Variance {
  const Node* mean = nullptr;
  ValueId value = kNoValue;
  double epsilon = -1;
};

Variance MatchVariance(const Graph& graph, ValueId sum) {
  const Node* add = graph.producer(sum, "add");
  if (add == nullptr) return {};
  for (size_t i = 0; i < 2; ++i) {
    const Node* mean = graph.producer(add->inputs[i], "reduce_mean");
    const std::optional<double> epsilon = SplatOf(graph, add->inputs[1 - i]);
    if (mean != nullptr && epsilon) return {mean, add->inputs[i], *epsilon};
  }
  return {};
}

// x / sqrt(mean(x^2) + epsilon)
PatternMatch MatchRms(const Graph& graph, const Node& node, const Quotient& quotient,
                      const Variance& variance) {
  const ValueId square = variance.mean->inputs[0], x = quotient.numerator;
  const int64_t axis = TrailingAxis(graph, *variance.mean);
  if (axis < 0 || BaseOfSquare(graph, square) != x) return {};
  if (!(graph.type(x) == graph.type(node.outputs[0]))) return {};
  PatternMatch match{FindOp("rms_norm"), {x}, {}, quotient.inner};
  match.attrs = {{"axis", axis}, {"epsilon", variance.epsilon}};
  for (ValueId id : {quotient.under_root, variance.value, square}) match.inner.push_back(id);
  return match;
}

// Without scale and shift.
PatternMatch MatchNormal(const Graph& graph, const Node& node) {
  const Quotient quotient = MatchQuotient(graph, node);
  const Variance variance = MatchVariance(graph, quotient.under_root);
  if (variance.mean == nullptr || !(variance.epsilon >= 0 && variance.epsilon < 1e30)) return {};
  const Centered centered = MatchCentered(graph, quotient.numerator);
  if (centered.axis < 0) return MatchRms(graph, node, quotient, variance);
  if (TrailingAxis(graph, *variance.mean) != centered.axis) return {};
  const ValueId square = variance.mean->inputs[0], d = BaseOfSquare(graph, square);
  const Centered again = MatchCentered(graph, d);
  if (again.axis != centered.axis || again.x != centered.x) return {};
  if (!(graph.type(centered.x) == graph.type(node.outputs[0]))) return {};
  PatternMatch match{FindOp("layer_norm"), {centered.x}, {}, quotient.inner};
  match.attrs = {{"axis", centered.axis}, {"epsilon", variance.epsilon}};
  for (ValueId id : {quotient.numerator, quotient.under_root, centered.mean, variance.value, square,
                     d, again.mean}) {
    match.inner.push_back(id);
  }
  return match;
}

// Whether v is one number for each element of a row, as layer_norm takes it.
bool FitsRow(const Graph& graph, ValueId v, const TensorType& x, int64_t axis) {
  const Dims row = TrailingDims(x.dims, static_cast<int>(axis));
  return graph.type(v) == TensorType{StatisticDType(x.dtype), row};
}

// `base` with `v` as the next input, when node = base's result op v.
PatternMatch Extend(const Graph& graph, const Node& node, size_t i, PatternMatch base) {
  if (base.op == nullptr) return {};
  const TensorType& x = graph.type(base.inputs[0]);
  const int64_t axis = base.attrs.integer("axis");
  if (!FitsRow(graph, node.inputs[1 - i], x, axis)) return {};
  if (!(graph.type(node.outputs[0]) == x)) return {};
  base.inputs.push_back(node.inputs[1 - i]);
  base.inner.push_back(node.inputs[i]);
  return base;
}

PatternMatch MatchScaled(const Graph& graph, const Node& node) {
  if (node.op->name != "mul") return {};
  for (size_t i = 0; i < 2; ++i) {
    const Node* inner = graph.producer(node.inputs[i]);
    if (inner == nullptr) continue;
    PatternMatch match = Extend(graph, node, i, MatchNormal(graph, *inner));
    if (match.op != nullptr) return match;
  }
  return {};
}

PatternMatch MatchShifted(const Graph& graph, const Node& node) {
  if (node.op->name != "add") return {};
  for (size_t i = 0; i < 2; ++i) {
    const Node* inner = graph.producer(node.inputs[i]);
    if (inner == nullptr) continue;
    const PatternMatch scaled = MatchScaled(graph, *inner);
    if (scaled.op == nullptr || scaled.op->name != "layer_norm") continue;
    PatternMatch match = Extend(graph, node, i, scaled);
    if (match.op != nullptr) return match;
  }
  return {};
}

}  // namespace

PatternMatch MatchNorm(const Graph& graph, const Node& root) {
  if (PatternMatch match = MatchShifted(graph, root); match.op != nullptr) return match;
  if (PatternMatch match = MatchScaled(graph, root); match.op != nullptr) return match;
  return MatchNormal(graph, root);
}

}  // namespace ridge

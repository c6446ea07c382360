// Three walks.  The first applies the local rules (algebra_rules.cc) to each call on its way into
// the new graph, so a rule sees inputs that are simplified already.  The second merges bias
// additions into products, which needs to know that nobody else reads the product.  The third is in
// pool_mask.cc.
#include <fmt/format.h>

#include "ridge/graph/passes/algebra_rules.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/pool_mask.h"
#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

// Calls that one call may go through; far more than the rules need.
constexpr int kMostRewrites = 64;

Status SimplifyNode(GraphRewriter& rewriter, const Node& node) {
  if (node.outputs.size() != 1) return rewriter.Copy(node);
  const std::string& name = rewriter.from().value(node.outputs[0]).name;
  RIDGE_ASSIGN_OR_RETURN(const ValueId now,
                         Simplifier(rewriter).Simplify(*node.op, rewriter.Map(node.inputs),
                                                       node.attrs, name, node.location));
  rewriter.Set(node.outputs[0], now);
  return Status();
}

Result<Graph> ApplyRules(const Graph& graph) {
  GraphRewriter rewriter(graph);
  RIDGE_RETURN_IF_ERROR(
      rewriter.Walk([&](const Node& node) { return SimplifyNode(rewriter, node); }));
  return rewriter.Finish();
}

// A product and the addition of a bias to it.
struct BiasAdd {
  const Node* product = nullptr;
  ValueId bias = kNoValue;
};

// Whether `node` is a plain matmul whose only reader may take it over.
bool IsOpenProduct(const Graph& graph, const std::vector<int32_t>& reads, ValueId id) {
  const ValueInfo& value = graph.value(id);
  if (value.kind != ValueKind::kResult || reads[static_cast<size_t>(id)] != 1) return false;
  const Node& node = graph.node(value.producer);
  return node.op->name == "matmul" && node.inputs.size() == 2 &&
         std::get<std::string>(node.attrs.at("epilogue")).empty();
}

BiasAdd FindBiasAdd(const Graph& graph, const std::vector<int32_t>& reads, const Node& node) {
  if (node.op->name != "add") return {};
  for (size_t i = 0; i < 2; ++i) {
    const ValueId product = node.inputs[i], bias = node.inputs[1 - i];
    if (!IsOpenProduct(graph, reads, product)) continue;
    const TensorType& type = graph.type(product);
    const TensorType wanted{type.dtype, {type.dims.back()}};
    const bool fits = graph.type(bias) == wanted && graph.type(node.outputs[0]) == type;
    if (fits) return {&graph.node(graph.value(product).producer), bias};
  }
  return {};
}

// add(matmul(a, b), bias[N]) -> matmul(a, b, bias)
Result<Graph> MergeBias(const Graph& graph) {
  const std::vector<int32_t> reads = CountReads(graph);
  std::vector<bool> merged(graph.nodes().size(), false);
  for (const Node& node : graph.nodes()) {
    const BiasAdd found = FindBiasAdd(graph, reads, node);
    if (found.product == nullptr) continue;
    merged[static_cast<size_t>(graph.value(found.product->outputs[0]).producer)] = true;
  }
  GraphRewriter rewriter(graph);
  RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) -> Status {
    if (merged[static_cast<size_t>(graph.value(node.outputs[0]).producer)]) return Status();
    const BiasAdd found = FindBiasAdd(graph, reads, node);
    if (found.product == nullptr) return rewriter.Copy(node);
    const Node& product = *found.product;
    return rewriter.Emit(*product.op,
                         rewriter.Map({product.inputs[0], product.inputs[1], found.bias}),
                         product.attrs, node.outputs, product.location);
  }));
  return rewriter.Finish();
}

}  // namespace

Result<Graph> SimplifyAlgebra(const Graph& graph) {
  RIDGE_ASSIGN_OR_RETURN(const Graph simple, ApplyRules(graph));
  RIDGE_ASSIGN_OR_RETURN(const Graph clean, RemoveDead(simple));  // dead readers count as readers
  RIDGE_ASSIGN_OR_RETURN(const Graph merged, MergeBias(clean));
  return MaskBeforePool(merged);
}

Result<ValueId> Simplifier::Simplify(const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
                                     const std::string& name, const std::string& location) {
  const OpDef* now = &op;
  for (int i = 0; i < kMostRewrites; ++i) {
    OpCall call;
    call.where = fmt::format("{} '{}'", now->name, name);
    for (ValueId id : inputs) {
      call.inputs.push_back(id == kNoValue ? OpCall::Absent() : rewriter_.to().type(id));
    }
    call.attrs = attrs;
    RIDGE_ASSIGN_OR_RETURN(const std::vector<TensorType> types, InferCall(*now, call));
    const RuleCall rule_call{rewriter_.to(), rewriter_, *now, call.attrs, inputs, types[0], name};
    Rewrite rewrite;
    for (const Rule& rule : AlgebraRules()) {
      if (*rule.op == '\0' || now->name == rule.op) rewrite = rule.apply(rule_call);
      if (!rewrite.none()) break;
    }
    if (rewrite.value != kNoValue) return rewrite.value;
    if (rewrite.op == nullptr) break;
    now = rewrite.op;
    inputs = std::move(rewrite.inputs);
    attrs = std::move(rewrite.attrs);
  }
  return rewriter_.AddNamedNode(*now, std::move(inputs), std::move(attrs), name, location);
}

}  // namespace ridge

// Four walks.  The first applies the local rules (algebra_rules.cc) to each call on its way into
// the new graph, so a rule sees simplified inputs.  The second merges bias additions into products
// that have no other readers.  The others are in pool_mask.cc and concat_gradients.cc.
#include <fmt/format.h>

#include <unordered_map>

#include "ridge/graph/passes/algebra_rules.h"
#include "ridge/graph/passes/concat_gradients.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/pool_mask.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

// Calls that one call may go through; far more than the rules need.
constexpr int kMostRewrites = 64;

// The rules that may rewrite a call of an operator, in their order.
const std::vector<const Rule*>& RulesFor(const OpDef& op) {
  static const auto by_op = [] {
    std::unordered_map<const OpDef*, std::vector<const Rule*>> map;  // look-up only
    for (const OpDef& each : AllOps()) {
      for (const Rule& rule : AlgebraRules()) {
        if (*rule.op == '\0' || each.name == rule.op) map[&each].push_back(&rule);
      }
    }
    return map;
  }();
  static const std::vector<const Rule*> kNone;
  const auto found = by_op.find(&op);
  return found == by_op.end() ? kNone : found->second;
}

Rewrite FirstRewrite(const RuleCall& call) {
  for (const Rule* rule : RulesFor(call.op)) {
    Rewrite rewrite = rule->apply(call);
    if (!rewrite.none()) return rewrite;
  }
  return {};
}

// What a rule made of a call, after all further rules: an older value, or a new node `name`.
Result<ValueId> Simplify(GraphRewriter& rewriter, Rewrite rewrite, const std::string& name,
                         const std::string& location) {
  for (int i = 1; i < kMostRewrites && rewrite.value == kNoValue; ++i) {
    OpCall call;
    call.where = fmt::format("{} '{}'", rewrite.op->name, name);
    for (ValueId id : rewrite.inputs)
      call.inputs.push_back(id == kNoValue ? OpCall::Absent() : rewriter.to().type(id));
    call.attrs = rewrite.attrs;
    RIDGE_ASSIGN_OR_RETURN(const std::vector<TensorType> types, InferCall(*rewrite.op, call));
    Rewrite next = FirstRewrite(
        {rewriter.to(), rewriter, *rewrite.op, call.attrs, rewrite.inputs, types[0], name});
    if (next.none()) break;
    rewrite = std::move(next);
  }
  if (rewrite.value != kNoValue) return rewrite.value;
  return rewriter.AddNamedNode(*rewrite.op, std::move(rewrite.inputs), std::move(rewrite.attrs),
                               name, location);
}

Status SimplifyNode(GraphRewriter& rewriter, const Node& node) {
  if (node.outputs.size() != 1) return rewriter.Copy(node);
  const ValueInfo& result = rewriter.from().value(node.outputs[0]);
  std::vector<ValueId> inputs = rewriter.Map(node.inputs);
  Rewrite rewrite = FirstRewrite(
      {rewriter.to(), rewriter, *node.op, node.attrs, inputs, result.type, result.name});
  if (rewrite.none()) return rewriter.CopyOn(node, std::move(inputs));
  RIDGE_ASSIGN_OR_RETURN(const ValueId now,
                         Simplify(rewriter, std::move(rewrite), result.name, node.location));
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
bool IsOpenProduct(const Graph& graph, const GraphUses& uses, ValueId id) {
  const Node* product = uses.IsReadOnce(id) ? graph.producer(id, "matmul") : nullptr;
  return product != nullptr && product->inputs.size() == 2 &&
         std::get<std::string>(product->attrs.at("epilogue")).empty();
}

BiasAdd FindBiasAdd(const Graph& graph, const GraphUses& uses, const Node& node) {
  if (node.op->name != "add") return {};
  for (size_t i = 0; i < 2; ++i) {
    const ValueId product = node.inputs[i], bias = node.inputs[1 - i];
    if (!IsOpenProduct(graph, uses, product)) continue;
    const TensorType& type = graph.type(product);
    const TensorType wanted{type.dtype, {type.dims.back()}};
    const bool fits = graph.type(bias) == wanted && graph.type(node.outputs[0]) == type;
    if (fits) return {graph.producer(product), bias};
  }
  return {};
}

// add(matmul(a, b), bias[N]) -> matmul(a, b, bias)
Result<Graph> MergeBias(Graph graph) {
  const GraphUses uses(graph);
  std::vector<bool> merged(graph.nodes().size(), false);
  bool any = false;
  for (const Node& node : graph.nodes()) {
    const BiasAdd found = FindBiasAdd(graph, uses, node);
    if (found.product == nullptr) continue;
    merged[static_cast<size_t>(graph.IdOf(*found.product))] = true;
    any = true;
  }
  if (!any) return graph;
  GraphRewriter rewriter(graph);
  RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) -> Status {
    if (merged[static_cast<size_t>(graph.IdOf(node))]) return Status();
    const BiasAdd found = FindBiasAdd(graph, uses, node);
    if (found.product == nullptr) return rewriter.Copy(node);
    const Node& product = *found.product;
    return rewriter.Emit(*product.op,
                         rewriter.Map({product.inputs[0], product.inputs[1], found.bias}),
                         product.attrs, node.outputs, product.location);
  }));
  return rewriter.Finish();
}

}  // namespace

Result<Graph> SimplifyAlgebra(Graph graph) {
  RIDGE_ASSIGN_OR_RETURN(graph, ApplyRules(graph));
  RIDGE_ASSIGN_OR_RETURN(graph, RemoveDead(std::move(graph)));  // dead readers count as readers
  RIDGE_ASSIGN_OR_RETURN(graph, MergeBias(std::move(graph)));
  RIDGE_ASSIGN_OR_RETURN(graph, SinkReluGrad(std::move(graph)));
  return ConcatSliceGradients(std::move(graph));
}

}  // namespace ridge

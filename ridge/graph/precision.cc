// We come from graph/passes (all but fuse).  Known here: a whole training or evaluation graph.
// Goes on to graph/passes/fuse.cc and plan/.
#include "ridge/graph/precision.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

constexpr size_t kOperands = 2;  // of every product; what follows is added to the sums

// FLOPs for each element that goes in or out, from which on half the time of the arithmetic is more
// than the casts cost.  A depthwise convolution has 9, a 1x1 convolution of 64 channels 64.
constexpr int64_t kLeastFlopsPerElement = 48;

bool IsProduct(const Graph& graph, const Node& node) {
  const std::string& op = node.op->name;
  if (op != "matmul" && op != "conv" && op != "conv_grad_input" && op != "conv_grad_weight")
    return false;
  return graph.type(node.inputs[0]).dtype == DType::kF32;
}

bool PaysForCasts(const Graph& graph, const Node& node) {
  int64_t elements = graph.type(node.outputs[0]).elements();
  for (size_t i = 0; i < kOperands; ++i) elements += graph.type(node.inputs[i]).elements();
  return CallCost(*node.op, graph.Call(node)).flops / kLeastFlopsPerElement >= elements;
}

bool IsCast(const Graph& graph, const Node& node) {
  return IsProduct(graph, node) && PaysForCasts(graph, node);
}

class ProductCaster {
 public:
  ProductCaster(const Graph& graph, DType operands)
      : graph_(graph), operands_(operands), rewriter_(graph) {}

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) { return Visit(node); }));
    return rewriter_.Finish();
  }

 private:
  Status Visit(const Node& node) {
    if (!IsCast(graph_, node)) return rewriter_.Copy(node);
    std::vector<ValueId> inputs = rewriter_.Map(node.inputs);
    for (size_t i = 0; i < kOperands; ++i) {
      RIDGE_ASSIGN_OR_RETURN(inputs[i], CastOf(node.inputs[i], node));
    }
    AttrMap attrs = node.attrs;
    attrs["out_dtype"] = std::string(DTypeName(DType::kF32));
    return rewriter_.Emit(*node.op, std::move(inputs), std::move(attrs), node.outputs,
                          node.location);
  }

  Result<ValueId> CastOf(ValueId id, const Node& reader) {
    const auto known = casts_.find(id);
    if (known != casts_.end()) return known->second;
    static const OpDef& cast = *FindOp("cast");
    AttrMap attrs = cast.attr_defaults;
    attrs["to"] = std::string(DTypeName(operands_));
    const std::string name =
        rewriter_.FreshName(graph_.value(id).name + "." + DTypeName(operands_));
    RIDGE_ASSIGN_OR_RETURN(
        const ValueId made,
        rewriter_.AddNamedNode(cast, {rewriter_.Map(id)}, std::move(attrs), name, reader.location));
    casts_[id] = made;
    return made;
  }

  const Graph& graph_;
  const DType operands_;
  GraphRewriter rewriter_;
  std::map<ValueId, ValueId> casts_;  // by old value
};

}  // namespace

Result<Graph> WithProductsIn(Graph graph, DType operands) {
  const auto is_cast = [&](const Node& node) { return IsCast(graph, node); };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_cast)) return graph;
  return ProductCaster(graph, operands).Run();
}

}  // namespace ridge

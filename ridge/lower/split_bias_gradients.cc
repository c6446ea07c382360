#include "ridge/lower/split_bias_gradients.h"

#include <algorithm>

#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

constexpr size_t kDy = 1, kDBias = 1;  // input and output

// All but the channels.
std::vector<int64_t> SummedAxes(const TensorType& dy) {
  std::vector<int64_t> axes = {0};
  for (int axis = 2; axis < dy.rank(); ++axis) axes.push_back(axis);
  return axes;
}

Status Split(const Node& node, GraphRewriter& rewriter) {
  const std::vector<ValueId> in = rewriter.Use(node.inputs);
  AttrMap attrs = node.attrs;
  attrs["bias"] = 0;
  RIDGE_RETURN_IF_ERROR(
      rewriter.Emit(*node.op, in, std::move(attrs), {node.outputs[0]}, node.location));
  const Graph& graph = rewriter.from();
  const TensorType& dy = graph.type(node.inputs[kDy]);
  const DType sum = graph.type(node.outputs[kDBias]).dtype;
  AttrMap of_sum = {{"axes", SummedAxes(dy)}};
  if (sum != dy.dtype) of_sum["out_dtype"] = std::string(DTypeName(sum));
  return rewriter.Emit(*FindOp("reduce_sum"), {in[kDy]}, std::move(of_sum), {node.outputs[kDBias]},
                       node.location);
}

}  // namespace

Result<Graph> SplitBiasGradients(Graph graph, const RewriteRules& rules) {
  const auto is_split = [&](const Node& node) {
    return node.op->name == "conv_grad_weight" && node.attrs.integer("bias") != 0 &&
           !rules.GivesBiasGradient(graph.type(node.inputs[0]).dtype);
  };
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_split)) return graph;
  GraphRewriter rewriter(graph);
  RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) {
    return is_split(node) ? Split(node, rewriter) : rewriter.Copy(node);
  }));
  return rewriter.Finish();
}

}  // namespace ridge

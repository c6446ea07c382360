// Evaluates with the operators' references, rounded to the dtype, which is what the reference
// backend would compute at each step.
//
// Not folded: results over 1 MiB, results over 4 KiB that are larger than their inputs together
// (an expand is cheaper to run than to keep and read), and work over 2^28 flops.
#include <algorithm>

#include "ridge/graph/interpret.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

constexpr int64_t kMostBytes = 1 << 20;
constexpr int64_t kFreeBytes = 4096;  // growing up to here is fine
constexpr int64_t kMostFlops = int64_t{1} << 28;

bool AllConstant(const Graph& graph, const std::vector<ValueId>& inputs) {
  return !inputs.empty() && std::all_of(inputs.begin(), inputs.end(), [&](ValueId id) {
    return id == kNoValue || graph.value(id).kind == ValueKind::kConstant;
  });
}

bool WorthFolding(const OpDef& op, const OpCall& call) {
  int64_t bytes_in = 0, bytes_out = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.has_input(i)) bytes_in += call.inputs[i].bytes();
  }
  for (const TensorType& type : call.outputs) bytes_out += type.bytes();
  if (bytes_out > kMostBytes || bytes_out > std::max(kFreeBytes, bytes_in)) return false;
  return CallCost(op, call).flops <= kMostFlops;
}

Status FoldNode(GraphRewriter& rewriter, const Node& node) {
  const std::vector<ValueId> inputs = rewriter.Map(node.inputs);
  if (!AllConstant(rewriter.to(), inputs)) return rewriter.Copy(node);
  const OpCall call = rewriter.from().Call(node);
  if (!WorthFolding(*node.op, call)) return rewriter.Copy(node);
  std::vector<Tensor> tensors;
  for (ValueId id : inputs) {
    tensors.push_back(id == kNoValue ? Tensor() : rewriter.to().value(id).constant);
  }
  std::vector<Tensor> results = EvaluateNode(*node.op, call, tensors);
  for (size_t i = 0; i < results.size(); ++i) {
    rewriter.SetConstant(node.outputs[i], std::move(results[i]));
  }
  return Status();
}

}  // namespace

Result<Graph> FoldConstants(Graph graph) {
  const bool any = std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    return AllConstant(graph, node.inputs) && WorthFolding(*node.op, graph.Call(node));
  });
  if (!any) return graph;
  GraphRewriter rewriter(graph);
  RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) { return FoldNode(rewriter, node); }));
  return rewriter.Finish();
}

}  // namespace ridge

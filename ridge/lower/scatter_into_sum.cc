#include "ridge/lower/scatter_into_sum.h"

#include <map>
#include <set>

#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

// An addition one of whose addends is scattered.
struct ScatteredSum {
  const Node* scattered = nullptr;
  ValueId x = kNoValue;  // the other addend
};

const OpDef& Scatter() {
  static const OpDef& scatter = *FindOp("scatter");
  return scatter;
}

AttrMap Adding() { return {{"reduction", std::string("add")}}; }

OpCall CallOf(const Graph& graph, const Node& add, const ScatteredSum& sum) {
  OpCall call;
  call.where = add.location;
  call.inputs = {graph.type(sum.x), graph.type(sum.scattered->inputs[0]),
                 graph.type(sum.scattered->inputs[1])};
  call.outputs = {graph.type(add.outputs[0])};
  call.attrs = Adding();
  return call;
}

// The rows of `scattered` are added to x; nullptr: they are not, or others read them.
const Node* ScatteredAddend(const Graph& graph, const GraphUses& uses, ValueId addend) {
  const Node* node = graph.producer(addend);
  const bool rows = node != nullptr && node->op->name == "scatter_add" &&
                    node->attrs.integer("axis") == 0 && graph.type(addend).rank() > 0;
  return rows && uses.IsReadOnce(addend) ? node : nullptr;
}

ScatteredSum FindSum(const Graph& graph, const GraphUses& uses, const RewriteRules& rules,
                     const Node& node) {
  if (node.op->name != "add") return {};
  for (size_t i : {0, 1}) {
    const ScatteredSum sum = {ScatteredAddend(graph, uses, node.inputs[i]), node.inputs[1 - i]};
    if (sum.scattered == nullptr || graph.type(sum.x) != graph.type(node.outputs[0])) continue;
    if (graph.type(node.inputs[i]) != graph.type(sum.x)) continue;
    if (rules.Fuses(Scatter(), CallOf(graph, node, sum))) return sum;
  }
  return {};
}

}  // namespace

Result<Graph> ScatterIntoSum(Graph graph, const RewriteRules& rules) {
  const GraphUses uses(graph);
  std::map<const Node*, ScatteredSum> sums;  // by addition
  std::set<const Node*> joined;              // scatter_adds
  for (const Node& node : graph.nodes()) {
    const ScatteredSum sum = FindSum(graph, uses, rules, node);
    if (sum.scattered == nullptr) continue;
    sums[&node] = sum;
    joined.insert(sum.scattered);
  }
  if (sums.empty()) return graph;
  GraphRewriter rewriter(graph);
  RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) {
    if (joined.contains(&node)) return Status();
    const auto found = sums.find(&node);
    if (found == sums.end()) return rewriter.Copy(node);
    const ScatteredSum& sum = found->second;
    return rewriter.Emit(Scatter(),
                         rewriter.Use({sum.x, sum.scattered->inputs[0], sum.scattered->inputs[1]}),
                         Adding(), node.outputs, node.location);
  }));
  return rewriter.Finish();
}

}  // namespace ridge

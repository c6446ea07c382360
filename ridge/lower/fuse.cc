// First convolutions of few channels with their pools, and norms with the steps that follow them,
// since a product's epilogue would take those steps.  Then epilogues: a step in a product's
// epilogue costs nothing.  Then groups of pointwise nodes: each becomes one node whose intermediate
// values never reach memory; a member with readers outside becomes another output, so nothing is
// computed twice.
//
// Optimizer updates are separate kernels and are not fused.
#include <queue>

#include "ridge/graph/expression.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"
#include "ridge/lower/fuse_epilogue.h"
#include "ridge/lower/fuse_groups.h"
#include "ridge/lower/fuse_norm.h"
#include "ridge/lower/passes.h"

namespace ridge {
namespace {

// Nodes that are emitted together: a group, or one node.
struct Unit {
  std::vector<NodeId> members;  // in order
  int32_t waits_for = 0;        // reads of values that are not yet there
  std::vector<int32_t> feeds;   // the units that read it, once for each read
};

class GroupEmitter {
 public:
  GroupEmitter(const Graph& graph, std::vector<std::vector<NodeId>> groups)
      : graph_(graph), uses_(graph), rewriter_(graph) {
    MakeUnits(std::move(groups));
  }

  Result<Graph> Run() {
    ConnectUnits();
    rewriter_.CopyLeaves();
    RIDGE_RETURN_IF_ERROR(EmitInOrder());
    return rewriter_.Finish();
  }

 private:
  void MakeUnits(std::vector<std::vector<NodeId>> groups) {
    unit_of_.assign(graph_.nodes().size(), -1);
    for (std::vector<NodeId>& members : groups) AddUnit(std::move(members));
    for (size_t n = 0; n < unit_of_.size(); ++n) {
      if (unit_of_[n] < 0) AddUnit({static_cast<NodeId>(n)});
    }
  }

  void AddUnit(std::vector<NodeId> members) {
    for (NodeId n : members) unit_of_[static_cast<size_t>(n)] = static_cast<int32_t>(units_.size());
    units_.push_back({std::move(members), 0, {}});
  }

  void ConnectUnits() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      for (ValueId id : graph_.nodes()[n].inputs) {
        const NodeId producer = id == kNoValue ? -1 : graph_.value(id).producer;
        if (producer < 0) continue;
        const int32_t from = unit_of_[static_cast<size_t>(producer)], to = unit_of_[n];
        if (from == to) continue;
        units_[static_cast<size_t>(from)].feeds.push_back(to);
        ++units_[static_cast<size_t>(to)].waits_for;
      }
    }
  }

  // As near to the old order as the groups allow: of the units that could come next, the one whose
  // last member came first.
  Status EmitInOrder() {
    using Ready = std::pair<NodeId, int32_t>;  // last member, unit
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    const auto add_if_ready = [&](int32_t unit) {
      const Unit& u = units_[static_cast<size_t>(unit)];
      if (u.waits_for == 0) ready.emplace(u.members.back(), unit);
    };
    for (size_t u = 0; u < units_.size(); ++u) add_if_ready(static_cast<int32_t>(u));
    size_t emitted = 0;
    for (; !ready.empty(); ++emitted) {
      const Unit& unit = units_[static_cast<size_t>(ready.top().second)];
      ready.pop();
      RIDGE_RETURN_IF_ERROR(EmitUnit(unit.members));
      for (int32_t fed : unit.feeds) {
        --units_[static_cast<size_t>(fed)].waits_for;
        add_if_ready(fed);
      }
    }
    RIDGE_CHECK(emitted == units_.size(), "fusion groups depend on each other in a circle");
    return Status();
  }

  Status EmitUnit(const std::vector<NodeId>& members) {
    if (members.size() == 1) return rewriter_.Copy(graph_.node(members[0]));
    std::vector<ValueId> inputs;
    const Expression expression = MakeExpression(members, inputs);
    std::vector<ValueId> results;
    for (int32_t step : expression.outputs) {
      results.push_back(graph_.node(members[static_cast<size_t>(step)]).outputs[0]);
    }
    return rewriter_.Emit(*FindOp("fused"), rewriter_.Map(inputs),
                          {{"expr", PrintExpression(expression)}}, results,
                          graph_.node(members.back()).location);
  }

  // `inputs` receives the values read from outside, in the order they are read.
  Expression MakeExpression(const std::vector<NodeId>& members, std::vector<ValueId>& inputs) {
    Expression expression;
    std::vector<int32_t> outside;  // reads of each member from outside
    for (NodeId n : members) {
      const Node& node = graph_.node(n);
      ExpressionStep step{node.op, node.attrs, {}};
      for (ValueId id : node.inputs) {
        const ExpressionOperand operand = OperandOf(id, members, expression.steps.size(), inputs);
        if (operand.is_step) --outside[static_cast<size_t>(operand.index)];
        step.operands.push_back(operand);
      }
      expression.steps.push_back(std::move(step));
      outside.push_back(uses_.ReadsOf(node.outputs[0]));
    }
    for (size_t i = 0; i < outside.size(); ++i) {
      if (outside[i] > 0) expression.outputs.push_back(static_cast<int32_t>(i));
    }
    // A group without readers is still emitted: this pass drops no nodes.
    if (expression.outputs.empty()) {
      expression.outputs.push_back(static_cast<int32_t>(outside.size()) - 1);
    }
    expression.inputs = inputs.size();
    return expression;
  }

  ExpressionOperand OperandOf(ValueId id, const std::vector<NodeId>& members, size_t before,
                              std::vector<ValueId>& inputs) const {
    for (size_t i = 0; i < before; ++i) {
      if (graph_.node(members[i]).outputs[0] == id) return {true, static_cast<int32_t>(i)};
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == id) return {false, static_cast<int32_t>(i)};
    }
    inputs.push_back(id);
    return {false, static_cast<int32_t>(inputs.size()) - 1};
  }

  const Graph& graph_;
  const GraphUses uses_;
  GraphRewriter rewriter_;
  std::vector<int32_t> unit_of_;  // by node
  std::vector<Unit> units_;
};

}  // namespace

Result<Graph> Fuse(Graph graph, const RewriteRules& rules) {
  RIDGE_ASSIGN_OR_RETURN(graph, FuseConvPool(std::move(graph), rules));
  return FuseNeighbours(std::move(graph), rules);
}

Result<Graph> FuseNeighbours(Graph graph, const RewriteRules& rules) {
  RIDGE_ASSIGN_OR_RETURN(graph, FuseNorms(std::move(graph), rules));
  RIDGE_ASSIGN_OR_RETURN(graph, FuseEpilogues(std::move(graph), rules));
  std::vector<std::vector<NodeId>> groups = FindFusionGroups(graph, rules);
  if (groups.empty()) return graph;
  return GroupEmitter(graph, std::move(groups)).Run();
}

}  // namespace ridge

// The gradient of a tied parameter is a sum of what its readers contribute: `sum + (a + b)`.  A
// node of the backward pass belongs to the reader that it comes from, by the lowest position of the
// gradients that it reads.
#include "ridge/pipeline/untie.h"

#include <algorithm>
#include <climits>

#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

constexpr char kTied[] = ".tied";
constexpr char kSum[] = ".grad_sum";

class Untying {
 public:
  Untying(const Graph& micro, const StepPlaces& places)
      : graph_(micro), places_(places), uses_(micro) {
    for (size_t n = 0; n < micro.nodes().size(); ++n) natural_.push_back(Natural(n));
  }

  // Where the readers of the second end begin; -1: the parameter is read at one end.
  int SecondEnd(ValueId param) const {
    std::vector<int> at;
    for (NodeId n : uses_.ReadersOf(param)) {
      const Place& place = places_.nodes[static_cast<size_t>(n)];
      if (place.part == StepPart::kForward) at.push_back(place.position);
    }
    std::sort(at.begin(), at.end());
    for (size_t i = 1; i < at.size(); ++i)
      if (2 * (at[i] - at[i - 1]) >= places_.positions) return at[i];
    return -1;
  }

  // The contributions to the sum of gradients that come from before and from behind `border`.
  // False: it is no sum of both.
  bool Contributions(ValueId sum, int border, std::vector<ValueId>& first,
                     std::vector<ValueId>& second) const {
    for (const GraphUpdate& update : graph_.updates()) {
      const Node* add = graph_.producer(update.value, "add");
      if (update.variable != sum || add == nullptr) continue;
      const ValueId gradient = add->inputs[0] == sum ? add->inputs[1] : add->inputs[0];
      Collect(gradient, border, first, second);
    }
    return !first.empty() && !second.empty();
  }

  // The graph in which `copy` and its sum stand for `param` behind `border`.
  Result<Graph> Rewrite(ValueId param, ValueId sum, int border, const std::vector<ValueId>& first,
                        const std::vector<ValueId>& second) const {
    GraphRewriter rewriter(graph_);
    rewriter.CopyLeaves();
    const ValueId copy = AddCopy(rewriter, param, ""), copy_sum = AddCopy(rewriter, param, kSum);
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      std::vector<ValueId> inputs = rewriter.Use(node.inputs);
      for (size_t i = 0; i < inputs.size(); ++i)
        if (node.inputs[i] == param && natural_[n] >= border) inputs[i] = copy;
      RIDGE_RETURN_IF_ERROR(rewriter.CopyOn(node, std::move(inputs)));
    }
    const std::vector<ValueId> low = rewriter.Map(first), high = rewriter.Map(second);
    const ValueId old_sum = rewriter.Map(sum);
    RIDGE_ASSIGN_OR_RETURN(Graph graph, rewriter.Finish());
    const std::vector<GraphUpdate> updates = graph.updates();
    graph.ClearUpdates();
    for (const GraphUpdate& update : updates)
      if (update.variable != old_sum) graph.AddUpdate(update.variable, update.value);
    RIDGE_RETURN_IF_ERROR(SumInto(graph, old_sum, low));
    RIDGE_RETURN_IF_ERROR(SumInto(graph, copy_sum, high));
    return RemoveDead(std::move(graph));
  }

 private:
  // Of a backward node the lowest position of the gradients that it comes from.
  int Natural(size_t n) const {
    const Place& place = places_.nodes[n];
    if (!place.is_backward()) return place.position;
    int lowest = INT_MAX;
    for (ValueId id : graph_.nodes()[n].inputs) {
      const Node* input = id == kNoValue ? nullptr : graph_.producer(id);
      if (input == nullptr) continue;
      const auto i = static_cast<size_t>(graph_.IdOf(*input));
      const Place& from = places_.nodes[i];
      if (from.part == StepPart::kBackward) lowest = std::min(lowest, from.position);
      if (from.part == StepPart::kWeights) lowest = std::min(lowest, natural_[i]);
    }
    return lowest == INT_MAX ? places_.positions - 1 : lowest;
  }

  void Collect(ValueId id, int border, std::vector<ValueId>& first,
               std::vector<ValueId>& second) const {
    const Node* node = graph_.producer(id);
    if (node == nullptr) return;
    if (node->op->name == "add" && uses_.IsReadOnce(id) &&
        graph_.type(node->inputs[0]) == graph_.type(id) &&
        graph_.type(node->inputs[1]) == graph_.type(id)) {
      Collect(node->inputs[0], border, first, second);
      Collect(node->inputs[1], border, first, second);
      return;
    }
    (natural_[static_cast<size_t>(graph_.IdOf(*node))] >= border ? second : first).push_back(id);
  }

  ValueId AddCopy(GraphRewriter& rewriter, ValueId param, const std::string& what) const {
    const std::string& name = graph_.value(param).name;
    ValueInfo info = graph_.value(what.empty() ? param : graph_.FindValue(name + what));
    info.name = name + kTied + what;
    return rewriter.AddLeaf(std::move(info));
  }

  // sum <- sum + (values[0] + values[1] + ..)
  static Status SumInto(Graph& graph, ValueId sum, const std::vector<ValueId>& values) {
    ValueId total = values[0];
    const auto add = [&](ValueId a, ValueId b) -> Result<ValueId> {
      RIDGE_ASSIGN_OR_RETURN(const NodeId node,
                             graph.AddNode(*FindOp("add"), {a, b}, {},
                                           {graph.UniqueName(graph.value(sum).name + ".next")}));
      return graph.node(node).outputs[0];
    };
    for (size_t i = 1; i < values.size(); ++i) {
      RIDGE_ASSIGN_OR_RETURN(total, add(total, values[i]));
    }
    RIDGE_ASSIGN_OR_RETURN(total, add(sum, total));
    graph.AddUpdate(sum, total);
    return Status();
  }

  const Graph& graph_;
  const StepPlaces& places_;
  const GraphUses uses_;
  std::vector<int> natural_;  // by node
};

// The update that reads the two sums together and clears both.
Result<Graph> JoinSums(const Graph& update, const std::string& param) {
  const ValueId sum = update.FindValue(param + kSum);
  GraphRewriter rewriter(update);
  rewriter.CopyLeaves();
  ValueInfo info = update.value(sum);
  info.name = param + kTied + kSum;
  const ValueId copy_sum = rewriter.AddLeaf(std::move(info));
  RIDGE_ASSIGN_OR_RETURN(const ValueId total,
                         rewriter.AddNamedNode(*FindOp("add"), {rewriter.Map(sum), copy_sum}, {},
                                               rewriter.FreshName(param + kSum + ".total"), ""));
  for (const Node& node : update.nodes()) {
    std::vector<ValueId> inputs = rewriter.Use(node.inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (node.inputs[i] == sum) inputs[i] = total;
    RIDGE_RETURN_IF_ERROR(rewriter.CopyOn(node, std::move(inputs)));
  }
  RIDGE_ASSIGN_OR_RETURN(Graph graph, rewriter.Finish());
  const std::vector<GraphUpdate> updates = graph.updates();
  for (const GraphUpdate& u : updates)
    if (graph.value(u.variable).name == param + kSum) graph.AddUpdate(copy_sum, u.value);
  return graph;
}

}  // namespace

Result<UntiedStep> UntieWeights(Graph micro, Graph update) {
  UntiedStep step{std::move(micro), std::move(update), {}, {}};
  RIDGE_ASSIGN_OR_RETURN(step.places, PlaceStep(step.micro, step.update));
  std::vector<std::string> names;
  for (ValueId id : step.micro.ValuesOfKind(ValueKind::kParameter))
    names.push_back(step.micro.value(id).name);
  for (const std::string& name : names) {
    const ValueId param = step.micro.FindValue(name), sum = step.micro.FindValue(name + kSum);
    if (sum == kNoValue || step.update.FindValue(name + kSum) == kNoValue) continue;
    const Untying untying(step.micro, step.places);
    const int border = untying.SecondEnd(param);
    std::vector<ValueId> first, second;
    if (border < 0 || !untying.Contributions(sum, border, first, second)) continue;
    RIDGE_ASSIGN_OR_RETURN(Graph untied, untying.Rewrite(param, sum, border, first, second));
    RIDGE_ASSIGN_OR_RETURN(step.update, JoinSums(step.update, name));
    step.micro = std::move(untied);
    RIDGE_ASSIGN_OR_RETURN(step.places, PlaceStep(step.micro, step.update));
    step.copies.push_back({name + kTied, name});
  }
  return step;
}

}  // namespace ridge

#include "ridge/pipeline/eval_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"
#include "ridge/pipeline/graph_part.h"

namespace ridge {
namespace {

constexpr int kAnywhere = -1;

bool IsVariable(const ValueInfo& info) {
  return info.kind == ValueKind::kParameter || info.kind == ValueKind::kState;
}

class EvalCut {
 public:
  EvalCut(const Graph& eval, const UntiedStep& step, const std::vector<int>& borders)
      : eval_(eval), step_(step), borders_(borders) {
    for (const TiedCopy& copy : step.copies) copies_[copy.of] = copy.variable;
  }

  Result<std::vector<EvalStage>> Run() {
    RIDGE_RETURN_IF_ERROR(PlaceNodes());
    RIDGE_ASSIGN_OR_RETURN(const Graph graph, WithCopies());
    Route(graph);
    std::vector<EvalStage> stages(borders_.size() + 1);
    for (size_t s = 0; s < stages.size(); ++s)
      RIDGE_RETURN_IF_ERROR(Make(graph, static_cast<int>(s), stages[s]));
    return stages;
  }

 private:
  int last() const { return static_cast<int>(borders_.size()); }

  // kAnywhere: of a variable that no stage changes.
  int HomeOf(const std::string& variable) const {
    const auto found = step_.places.variables.find(variable);
    return found == step_.places.variables.end() ? kAnywhere : StageOf(found->second, borders_);
  }

  Status PlaceNodes() {
    std::vector<int> of_value(eval_.values().size(), kAnywhere);
    for (const Node& node : eval_.nodes()) {
      int stage = kAnywhere;
      bool reads_variable = false;
      for (ValueId id : node.inputs) {
        if (id == kNoValue) continue;
        const ValueInfo& info = eval_.value(id);
        stage = std::max(stage, IsVariable(info) && !copies_.contains(info.name)
                                    ? HomeOf(info.name)
                                    : of_value[static_cast<size_t>(id)]);
        reads_variable |= IsVariable(info);
      }
      RIDGE_ASSIGN_OR_RETURN(stage, WithTied(node, stage));
      if (reads_variable) stage = std::max(stage, 0);
      RIDGE_RETURN_IF_ERROR(CheckHomes(node, stage));
      stages_.push_back(stage);
      for (ValueId id : node.outputs) of_value[static_cast<size_t>(id)] = stage;
    }
    return Status();
  }

  // A tied weight is read at the first of its two ends that is not before the other operands.
  Result<int> WithTied(const Node& node, int stage) const {
    for (ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      const auto copy = copies_.find(eval_.value(id).name);
      if (copy == copies_.end()) continue;
      const int home = HomeOf(copy->first);
      stage = stage <= home ? home : std::max(stage, HomeOf(copy->second));
    }
    return stage;
  }

  Status CheckHomes(const Node& node, int stage) const {
    for (ValueId id : node.inputs) {
      if (id == kNoValue || !IsVariable(eval_.value(id))) continue;
      const std::string& name = NameAt(eval_.value(id).name, stage);
      const int home = HomeOf(name);
      if (home == kAnywhere || home == stage) continue;
      return Status(
          ErrorCode::kUnsupported,
          fmt::format("{}: an evaluation reads '{}' of stage {} in stage {}; stages share "
                      "no weights. hint: another p",
                      eval_.Where(node), name, home, stage));
    }
    return Status();
  }

  // Of a variable as this stage has it.
  const std::string& NameAt(const std::string& variable, int stage) const {
    const auto copy = copies_.find(variable);
    return copy != copies_.end() && HomeOf(variable) != stage ? copy->second : variable;
  }

  Result<Graph> WithCopies() const {
    GraphRewriter rewriter(eval_);
    rewriter.CopyLeaves();
    std::map<std::string, ValueId> added;
    for (size_t n = 0; n < eval_.nodes().size(); ++n) {
      const Node& node = eval_.nodes()[n];
      std::vector<ValueId> inputs = rewriter.Use(node.inputs);
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (node.inputs[i] == kNoValue || !IsVariable(eval_.value(node.inputs[i]))) continue;
        ValueInfo info = eval_.value(node.inputs[i]);
        const std::string& name = NameAt(info.name, stages_[n]);
        if (name == info.name) continue;
        info.name = name;
        const auto known = added.find(name);
        inputs[i] = known != added.end() ? known->second : rewriter.AddLeaf(std::move(info));
        added[name] = inputs[i];
      }
      RIDGE_RETURN_IF_ERROR(rewriter.CopyOn(node, std::move(inputs)));
    }
    return rewriter.Finish();
  }

  // Nodes of `graph` are those of the evaluation, in the same order.
  int StageOfValue(const Graph& graph, ValueId id) const {
    const Node* node = graph.producer(id);
    return node == nullptr ? kAnywhere : stages_[static_cast<size_t>(graph.IdOf(*node))];
  }

  // By value, the last stage that reads it.
  void Route(const Graph& graph) {
    const GraphUses uses(graph);
    last_read_.assign(graph.values().size(), kAnywhere);
    for (size_t v = 0; v < last_read_.size(); ++v) {
      for (NodeId n : uses.ReadersOf(static_cast<ValueId>(v)))
        last_read_[v] = std::max(last_read_[v], stages_[static_cast<size_t>(n)]);
    }
  }

  Status Make(const Graph& graph, int s, EvalStage& stage) const {
    GraphPart part(graph, fmt::format("{}.stage{}", graph.name, s), [&](const Node& node) {
      return StageOfValue(graph, node.outputs[0]) == kAnywhere;
    });
    for (const Node& node : graph.nodes())
      if (StageOfValue(graph, node.outputs[0]) == s) RIDGE_RETURN_IF_ERROR(part.Take(node));
    for (size_t v = 0; v < graph.values().size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      const int from = StageOfValue(graph, id);
      if (from == kAnywhere || from > s || last_read_[v] <= s) continue;
      stage.sends.push_back(graph.value(id).name);
      if (from == s) RIDGE_RETURN_IF_ERROR(part.Output(id));
    }
    for (const GraphOutput& output : graph.outputs()) {
      const int from = StageOfValue(graph, output.value);
      if ((from == kAnywhere ? last() : from) != s) continue;
      RIDGE_RETURN_IF_ERROR(part.Output(output.value));
      stage.outputs.emplace_back(output.name, graph.value(output.value).name);
    }
    RIDGE_ASSIGN_OR_RETURN(stage.graph, std::move(part).Finish());
    return Status();
  }

  const Graph& eval_;
  const UntiedStep& step_;
  const std::vector<int>& borders_;
  std::map<std::string, std::string> copies_;  // of tied weights
  std::vector<int> stages_;                    // by node
  std::vector<int> last_read_;                 // by value
};

}  // namespace

Result<std::vector<EvalStage>> CutEvaluation(const Graph& eval, const UntiedStep& step,
                                             const std::vector<int>& borders) {
  return EvalCut(eval, step, borders).Run();
}

}  // namespace ridge

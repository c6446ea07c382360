// Values are of one stage (its variables), of all (they read variables of several), or of none
// (learning rate).  A number that reads one of all and one of a stage is of all: a link in the sum
// of squares.  Anything larger is of the stage, behind the exchange: a clipped gradient.
#include "ridge/pipeline/update_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/reach.h"
#include "ridge/pipeline/graph_part.h"

namespace ridge {
namespace {

constexpr int kNone = -1;
constexpr int kAll = -2;

struct Owner {
  int stage = kNone;
  bool behind = false;  // the exchange
};

class UpdateSplit {
 public:
  UpdateSplit(const Graph& graph, const StepPlaces& places, const std::vector<int>& borders)
      : graph_(graph), owners_(graph.values().size()), shared_(graph.values().size(), false) {
    for (size_t v = 0; v < graph.values().size(); ++v) {
      const auto found = places.variables.find(graph.values()[v].name);
      const ValueKind kind = graph.values()[v].kind;
      if (found != places.variables.end() &&
          (kind == ValueKind::kParameter || kind == ValueKind::kState))
        owners_[v].stage = StageOf(found->second, borders);
    }
  }

  Status Run(std::vector<PipelineStage>& stages) {
    for (const Node& node : graph_.nodes()) RIDGE_RETURN_IF_ERROR(Assign(node));
    for (const Node& node : graph_.nodes()) FindShared(node);
    for (size_t s = 0; s < stages.size(); ++s) {
      RIDGE_RETURN_IF_ERROR(MakeNumbers(static_cast<int>(s), stages[s]));
      RIDGE_RETURN_IF_ERROR(MakeUpdate(static_cast<int>(s), stages[s]));
    }
    return Status();
  }

 private:
  Owner& OwnerOf(ValueId id) { return owners_[static_cast<size_t>(id)]; }

  Status Assign(const Node& node) {
    Owner owner;
    bool of_all = false, several = false;
    for (ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      const Owner& input = OwnerOf(id);
      owner.behind |= input.behind;
      of_all |= input.stage == kAll;
      if (input.stage < 0) continue;
      several |= owner.stage >= 0 && owner.stage != input.stage;
      owner.stage = input.stage;
    }
    const bool number = graph_.type(node.outputs[0]).rank() == 0;
    if (several && owner.behind) {
      return Status(
          ErrorCode::kUnsupported,
          fmt::format("{}: a pipeline's update exchanges numbers once; this is read behind that "
                      "and needs several stages again. hint: leave --mesh p out",
                      graph_.Where(node)));
    }
    if (several || (of_all && (owner.stage == kNone || (number && !owner.behind)))) {
      owner.stage = kAll;
    } else {
      owner.behind |= of_all;
    }
    for (ValueId id : node.outputs) OwnerOf(id) = owner;
    return Status();
  }

  // What a node of all stages reads of one.
  void FindShared(const Node& node) {
    if (OwnerOf(node.outputs[0]).stage != kAll) return;
    for (ValueId id : node.inputs)
      if (id != kNoValue && OwnerOf(id).stage >= 0) shared_[static_cast<size_t>(id)] = true;
  }

  bool IsCopied(const Node& node, int stage, bool with_all) {
    const int owner = OwnerOf(node.outputs[0]).stage;
    return owner == kNone || owner == stage || (with_all && owner == kAll);
  }

  Status MakeNumbers(int s, PipelineStage& stage) {
    GraphPart part(graph_, fmt::format("{}.numbers", graph_.name),
                   [&](const Node& node) { return IsCopied(node, s, /*with_all=*/false); });
    for (size_t v = 0; v < shared_.size(); ++v) {
      if (!shared_[v] || owners_[v].stage != s) continue;
      RIDGE_RETURN_IF_ERROR(part.Output(static_cast<ValueId>(v)));
      stage.shares.push_back(graph_.values()[v].name);
    }
    RIDGE_ASSIGN_OR_RETURN(stage.numbers, std::move(part).Finish());
    return Status();
  }

  Status MakeUpdate(int s, PipelineStage& stage) {
    std::vector<GraphUpdate> updates;
    std::vector<ValueId> roots;
    for (const GraphUpdate& update : graph_.updates()) {
      if (OwnerOf(update.variable).stage != s) continue;
      updates.push_back(update);
      roots.push_back(update.value);
    }
    for (const GraphOutput& output : graph_.outputs()) {
      if (std::max(0, OwnerOf(output.value).stage) != s) continue;
      stage.results.emplace_back(output.name, graph_.value(output.value).name);
      roots.push_back(output.value);
    }
    GraphPart part(graph_, fmt::format("{}.update", graph_.name),
                   [&](const Node& node) { return IsCopied(node, s, /*with_all=*/true); });
    GiveShared(s, roots, part);
    // In the order of the graph, which is that of the whole update.
    const std::vector<bool> needed = ProducersOf(graph_, Ancestors(graph_, roots, Through()));
    for (size_t n = 0; n < needed.size(); ++n)
      if (needed[n]) RIDGE_RETURN_IF_ERROR(part.Take(graph_.nodes()[n]));
    for (ValueId id : roots) RIDGE_RETURN_IF_ERROR(part.Get(id).status());
    for (const GraphOutput& output : graph_.outputs())
      if (std::max(0, OwnerOf(output.value).stage) == s)
        RIDGE_RETURN_IF_ERROR(part.Output(output.value));
    for (const GraphUpdate& update : updates) RIDGE_RETURN_IF_ERROR(part.Update(update));
    RIDGE_ASSIGN_OR_RETURN(stage.update, std::move(part).Finish());
    return Status();
  }

  // Not through what was computed before the exchange.
  std::function<bool(const Node&, size_t)> Through() {
    return [this](const Node& node, size_t input) {
      const ValueId id = node.inputs[input];
      return id != kNoValue && !shared_[static_cast<size_t>(id)];
    };
  }

  void GiveShared(int s, const std::vector<ValueId>& roots, GraphPart& part) {
    const ValueSet needed = Ancestors(graph_, roots);
    for (size_t v = 0; v < shared_.size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      const bool own_variable = graph_.producer(id) == nullptr && owners_[v].stage == s;
      if (needed[v] && shared_[v] && !own_variable) part.Give(id);
    }
  }

  const Graph& graph_;
  std::vector<Owner> owners_;  // by value
  std::vector<bool> shared_;   // by value
};

}  // namespace

Status SplitUpdate(const Graph& update, const StepPlaces& places, const std::vector<int>& borders,
                   std::vector<PipelineStage>& stages) {
  return UpdateSplit(update, places, borders).Run(stages);
}

}  // namespace ridge

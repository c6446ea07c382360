#include "ridge/pipeline/stages.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/uses.h"
#include "ridge/pipeline/graph_part.h"
#include "ridge/pipeline/update_parts.h"

namespace ridge {
namespace {

using Marks = std::vector<std::vector<bool>>;  // by stage, by value

class Splitting {
 public:
  Splitting(const Graph& micro, const StepPlaces& places, const std::vector<int>& borders,
            bool separate_weights)
      : micro_(micro),
        places_(places),
        borders_(borders),
        uses_(micro),
        separate_weights_(separate_weights),
        stages_(borders.size() + 1),
        forward_out_(stages_.size(), std::vector<bool>(micro.values().size(), false)),
        backward_out_(forward_out_),
        sends_forward_(forward_out_),
        sends_backward_(forward_out_),
        keeps_(forward_out_) {}

  Result<std::vector<PipelineStage>> Run(const Graph& update) {
    for (size_t s = 0; s < stages_.size(); ++s) {
      stages_[s].begin = s == 0 ? 0 : borders_[s - 1];
      stages_[s].end = s == borders_.size() ? places_.positions : borders_[s];
    }
    RIDGE_RETURN_IF_ERROR(CheckVariables(update));
    for (size_t v = 0; v < micro_.values().size(); ++v)
      RIDGE_RETURN_IF_ERROR(Route(static_cast<ValueId>(v)));
    AddResults();
    for (size_t s = 0; s < stages_.size(); ++s) {
      RIDGE_RETURN_IF_ERROR(MakeForward(s));
      RIDGE_RETURN_IF_ERROR(MakeBackward(s));
      RIDGE_RETURN_IF_ERROR(MakeWeights(s));
      ListValues(s);
    }
    RIDGE_RETURN_IF_ERROR(SplitUpdate(update, places_, borders_, stages_));
    return std::move(stages_);
  }

 private:
  size_t StageAt(const Place& place) const {
    return static_cast<size_t>(StageOf(place.position, borders_));
  }
  bool IsAnywhere(const Node& node) const { return PlaceOf(node).part == StepPart::kAnywhere; }
  const Place& PlaceOf(const Node& node) const { return places_.Of(micro_, node.outputs[0]); }

  // A variable that changes is in one stage.
  Status CheckVariables(const Graph& update) {
    for (ValueKind kind : {ValueKind::kParameter, ValueKind::kState}) {
      for (ValueId id : micro_.ValuesOfKind(kind)) {
        const std::string& name = micro_.value(id).name;
        if (!IsUpdated(micro_, name) && !IsUpdated(update, name)) continue;
        for (NodeId reader : uses_.ReadersOf(id))
          RIDGE_RETURN_IF_ERROR(CheckHome(name, micro_.node(reader)));
      }
    }
    for (const GraphUpdate& u : micro_.updates()) {
      const Node* writer = micro_.producer(u.value);
      if (writer != nullptr && !IsAnywhere(*writer))
        RIDGE_RETURN_IF_ERROR(CheckHome(micro_.value(u.variable).name, *writer));
    }
    return Status();
  }

  Status CheckHome(const std::string& variable, const Node& node) const {
    const int home = StageOf(places_.variables.at(variable), borders_);
    const int stage = StageOf(PlaceOf(node).position, borders_);
    if (stage == home) return Status();
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: runs in stage {} and reads or writes '{}' of stage {}; stages "
                              "share no weights that change. hint: leave tied=1 out, or another p",
                              micro_.Where(node), stage, variable, home));
  }

  // Through which stages a value travels, and which keep it.
  Status Route(ValueId id) {
    const Node* node = micro_.producer(id);
    if (node == nullptr || IsAnywhere(*node)) return Status();
    const Place& home = PlaceOf(*node);
    const size_t from = StageAt(home), v = static_cast<size_t>(id);
    for (NodeId n : uses_.ReadersOf(id)) {
      const Place& reader = places_.nodes[static_cast<size_t>(n)];
      const size_t to = StageAt(reader);
      const bool backward = home.is_backward();
      if ((backward && to > from) || (!backward && !reader.is_backward() && to < from)) {
        return Status(ErrorCode::kInternal,
                      fmt::format("{}: stage {} reads '{}' of stage {} against the order of the "
                                  "stages",
                                  micro_.Where(micro_.node(n)), to, micro_.value(id).name, from));
      }
      for (size_t s = from; s < to; ++s) sends_forward_[s][v] = true;
      for (size_t s = from; s > to; --s) sends_backward_[s][v] = true;
      if (to != from || home.part != reader.part) MarkOutput(home, from, v);
      if (!backward && reader.is_backward()) keeps_[std::max(from, to)][v] = true;
    }
    return Status();
  }

  void MarkOutput(const Place& home, size_t stage, size_t value) {
    if (home.part == StepPart::kForward) forward_out_[stage][value] = true;
    if (home.part == StepPart::kBackward) backward_out_[stage][value] = true;
  }

  void AddResults() {
    for (const GraphOutput& output : micro_.outputs()) {
      const Node* node = micro_.producer(output.value);
      const bool placed = node != nullptr && !IsAnywhere(*node);
      const size_t stage = placed ? StageAt(PlaceOf(*node)) : stages_.size() - 1;
      const Place home = placed ? PlaceOf(*node) : Place{StepPart::kForward, 0};
      MarkOutput(home, stage, static_cast<size_t>(output.value));
      stages_[stage].results.emplace_back(output.name, micro_.value(output.value).name);
    }
  }

  bool IsOf(size_t n, size_t stage, StepPart part) const {
    return places_.nodes[n].part == part && StageAt(places_.nodes[n]) == stage;
  }

  Status TakeNodes(size_t stage, StepPart what, GraphPart& part) {
    for (size_t n = 0; n < micro_.nodes().size(); ++n)
      if (IsOf(n, stage, what)) RIDGE_RETURN_IF_ERROR(part.Take(micro_.nodes()[n]));
    return Status();
  }

  Status AddOutputs(const std::vector<bool>& values, GraphPart& part) {
    for (size_t v = 0; v < values.size(); ++v)
      if (values[v]) RIDGE_RETURN_IF_ERROR(part.Output(static_cast<ValueId>(v)));
    return Status();
  }

  // The updates whose values this part of the stage makes.
  Status AddUpdates(size_t stage, StepPart what, GraphPart& part) {
    for (const GraphUpdate& update : micro_.updates()) {
      const Node* node = micro_.producer(update.value);
      const bool placed = node != nullptr && !IsAnywhere(*node);
      const Place home = placed ? PlaceOf(*node)
                                : Place{StepPart::kForward,
                                        places_.variables.at(micro_.value(update.variable).name)};
      if (home.part == what && StageAt(home) == stage) RIDGE_RETURN_IF_ERROR(part.Update(update));
    }
    return Status();
  }

  GraphPart NewPart(size_t stage, const char* what) {
    return GraphPart(micro_, fmt::format("{}.stage{}.{}", micro_.name, stage, what),
                     [this](const Node& node) { return IsAnywhere(node); });
  }

  Status MakeForward(size_t s) {
    GraphPart part = NewPart(s, "forward");
    RIDGE_RETURN_IF_ERROR(TakeNodes(s, StepPart::kForward, part));
    MarkAnywhere(s, part);
    RIDGE_RETURN_IF_ERROR(AddOutputs(forward_out_[s], part));
    RIDGE_RETURN_IF_ERROR(AddUpdates(s, StepPart::kForward, part));
    RIDGE_ASSIGN_OR_RETURN(stages_[s].forward, std::move(part).Finish());
    return Status();
  }

  // What runs anywhere, and in this forward pass: the backward pass reads it from there.
  void MarkAnywhere(size_t s, const GraphPart& forward) {
    for (size_t v = 0; v < micro_.values().size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      const Node* node = micro_.producer(id);
      if (node == nullptr || !IsAnywhere(*node) || !forward.Has(id)) continue;
      for (NodeId n : uses_.ReadersOf(id)) {
        const Place& reader = places_.nodes[static_cast<size_t>(n)];
        if (!reader.is_backward() || StageAt(reader) != s) continue;
        forward_out_[s][v] = true;
        keeps_[s][v] = true;
      }
    }
  }

  void GiveKept(size_t s, GraphPart& part, const std::vector<StepPart>& readers) {
    for (size_t v = 0; v < micro_.values().size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      const Node* node = micro_.producer(id);
      if (node == nullptr || !keeps_[s][v] || !IsAnywhere(*node)) continue;
      for (NodeId n : uses_.ReadersOf(id)) {
        const Place& reader = places_.nodes[static_cast<size_t>(n)];
        const bool reads = std::find(readers.begin(), readers.end(), reader.part) != readers.end();
        if (reads && StageAt(reader) == s) part.Give(id);
      }
    }
  }

  Status MakeBackward(size_t s) {
    GraphPart part = NewPart(s, "backward");
    std::vector<StepPart> readers = {StepPart::kBackward};
    if (!separate_weights_) readers.push_back(StepPart::kWeights);
    GiveKept(s, part, readers);
    for (size_t n = 0; n < micro_.nodes().size(); ++n) {
      if (IsOf(n, s, StepPart::kBackward) || (!separate_weights_ && IsOf(n, s, StepPart::kWeights)))
        RIDGE_RETURN_IF_ERROR(part.Take(micro_.nodes()[n]));
    }
    for (size_t v = 0; v < backward_out_[s].size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      if (backward_out_[s][v] && (separate_weights_ || sends_backward_[s][v] || IsResult(id)))
        RIDGE_RETURN_IF_ERROR(part.Output(id));
    }
    RIDGE_RETURN_IF_ERROR(AddUpdates(s, StepPart::kBackward, part));
    if (!separate_weights_) RIDGE_RETURN_IF_ERROR(AddUpdates(s, StepPart::kWeights, part));
    RIDGE_ASSIGN_OR_RETURN(stages_[s].backward, std::move(part).Finish());
    return Status();
  }

  bool IsResult(ValueId id) const {
    return std::any_of(micro_.outputs().begin(), micro_.outputs().end(),
                       [&](const GraphOutput& output) { return output.value == id; });
  }

  Status MakeWeights(size_t s) {
    GraphPart part = NewPart(s, "weights");
    if (separate_weights_) {
      GiveKept(s, part, {StepPart::kWeights});
      RIDGE_RETURN_IF_ERROR(TakeNodes(s, StepPart::kWeights, part));
      RIDGE_RETURN_IF_ERROR(AddUpdates(s, StepPart::kWeights, part));
    }
    RIDGE_ASSIGN_OR_RETURN(stages_[s].weights, std::move(part).Finish());
    return Status();
  }

  void ListValues(size_t s) {
    PipelineStage& stage = stages_[s];
    for (size_t v = 0; v < micro_.values().size(); ++v) {
      const ValueInfo& info = micro_.values()[v];
      if (sends_forward_[s][v]) {
        stage.sends_forward.push_back(info.name);
        stage.forward_bytes += info.type.bytes();
      }
      if (sends_backward_[s][v]) {
        stage.sends_backward.push_back(info.name);
        stage.backward_bytes += info.type.bytes();
      }
      if (keeps_[s][v]) stage.keeps.push_back(info.name);
    }
  }

  const Graph& micro_;
  const StepPlaces& places_;
  const std::vector<int>& borders_;
  const GraphUses uses_;
  const bool separate_weights_;
  std::vector<PipelineStage> stages_;
  Marks forward_out_, backward_out_;      // outputs of the graphs
  Marks sends_forward_, sends_backward_;  // by the stage that sends
  Marks keeps_;
};

}  // namespace

int StageOf(int position, const std::vector<int>& borders) {
  return static_cast<int>(std::upper_bound(borders.begin(), borders.end(), position) -
                          borders.begin());
}

Result<std::vector<PipelineStage>> MakeStages(const UntiedStep& step,
                                              const std::vector<int>& borders,
                                              bool separate_weights) {
  RIDGE_ASSIGN_OR_RETURN(
      std::vector<PipelineStage> stages,
      Splitting(step.micro, step.places, borders, separate_weights).Run(step.update));
  for (const TiedCopy& copy : step.copies) {
    const int stage = StageOf(step.places.variables.at(copy.variable), borders);
    stages[static_cast<size_t>(stage)].copies.push_back(copy);
  }
  return stages;
}

}  // namespace ridge

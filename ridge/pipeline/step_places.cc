#include "ridge/pipeline/step_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <numeric>

#include "ridge/graph/reach.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

constexpr int kNowhere = -1;

bool IsVariable(const ValueInfo& info) {
  return info.kind == ValueKind::kParameter || info.kind == ValueKind::kState;
}

std::vector<ValueId> VariablesOf(const Graph& graph) {
  std::vector<ValueId> variables = graph.ValuesOfKind(ValueKind::kParameter);
  for (ValueId id : graph.ValuesOfKind(ValueKind::kState)) variables.push_back(id);
  return variables;
}

bool IsGradientSum(const Graph& graph, const GraphUpdate& update) {
  return graph.value(update.variable).role == ValueRole::kGradient;
}

class Placing {
 public:
  explicit Placing(const Graph& graph)
      : graph_(graph),
        uses_(graph),
        varies_(Descendants(graph, VariablesOf(graph))),
        variable_(graph.values().size(), kNowhere) {
    places_.nodes.resize(graph.nodes().size());
  }

  Result<StepPlaces> Run() {
    const ValueId loss = graph_.FindOutput("loss");
    RIDGE_CHECK(loss != kNoValue, "a training step has a loss");
    PlaceForward(Ancestors(graph_, {loss}));
    if (places_.positions == 0) {
      return Status(ErrorCode::kInvalidModel,
                    fmt::format("{}: the loss depends on no variable", graph_.name));
    }
    PlaceVariables();
    FindWeights();
    PlaceBackward();
    PlaceRest();
    for (ValueId id : VariablesOf(graph_))
      places_.variables[graph_.value(id).name] = std::max(0, variable_[static_cast<size_t>(id)]);
    RIDGE_RETURN_IF_ERROR(CheckVariables());
    return std::move(places_);
  }

 private:
  Place& PlaceOf(const Node& node) { return places_.nodes[static_cast<size_t>(graph_.IdOf(node))]; }
  Place* PlaceOf(ValueId id) {
    const Node* node = id == kNoValue ? nullptr : graph_.producer(id);
    return node == nullptr ? nullptr : &PlaceOf(*node);
  }
  int& VariableAt(ValueId id) { return variable_[static_cast<size_t>(id)]; }

  std::vector<ValueId> GradientUpdates() const {
    std::vector<ValueId> values;
    for (const GraphUpdate& update : graph_.updates())
      if (IsGradientSum(graph_, update)) values.push_back(update.value);
    return values;
  }

  // The part of every node, and positions of the forward pass.
  void PlaceForward(const ValueSet& for_loss) {
    const std::vector<bool> loss_nodes = ProducersOf(graph_, for_loss);
    const std::vector<bool> gradient_nodes =
        ProducersOf(graph_, Ancestors(graph_, GradientUpdates()));
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (!varies_[static_cast<size_t>(node.outputs[0])]) continue;
      Place& place = places_.nodes[n];
      bool reads_backward = false;
      int reads_at = 0;
      for (ValueId id : node.inputs) {
        const Place* input = PlaceOf(id);
        if (input == nullptr) continue;
        reads_backward |= input->is_backward();
        reads_at = std::max(reads_at, input->position);
      }
      const bool is_backward = !loss_nodes[n] && (reads_backward || gradient_nodes[n]);
      place.part = is_backward ? StepPart::kBackward : StepPart::kForward;
      if (!is_backward) place.position = loss_nodes[n] ? places_.positions++ : reads_at;
    }
    SinkStatistics(loss_nodes);
  }

  // What the loss does not depend on goes to its readers: a running mean that fades to the new one.
  void SinkStatistics(const std::vector<bool>& loss_nodes) {
    for (size_t n = graph_.nodes().size(); n-- > 0;) {
      Place& place = places_.nodes[n];
      if (place.part != StepPart::kForward || loss_nodes[n]) continue;
      int first = INT_MAX;
      for (ValueId id : graph_.nodes()[n].outputs)
        for (NodeId reader : uses_.ReadersOf(id))
          first = std::min(first, places_.nodes[static_cast<size_t>(reader)].position);
      if (first != INT_MAX) place.position = std::max(place.position, first);
    }
  }

  // A variable is where the forward pass reads it first.
  void PlaceVariables() {
    for (const Node& node : graph_.nodes()) {
      if (PlaceOf(node).part != StepPart::kForward) continue;
      for (ValueId id : node.inputs) {
        if (id == kNoValue || !IsVariable(graph_.value(id))) continue;
        int& at = VariableAt(id);
        at = at == kNowhere ? PlaceOf(node).position : std::min(at, PlaceOf(node).position);
      }
    }
    for (const GraphUpdate& update : graph_.updates()) {  // a sum is where its parameter is
      const std::string& name = graph_.value(update.variable).name;
      const ValueId param = graph_.FindValue(name.substr(0, name.rfind('.')));
      if (IsGradientSum(graph_, update) && param != kNoValue)
        VariableAt(update.variable) = VariableAt(param);
    }
  }

  // leads_[n]: the variable whose update a backward node leads to; several: kMany.
  static constexpr ValueId kMany = -2;
  void FindWeights() {
    leads_.assign(graph_.nodes().size(), kNoValue);
    floor_.assign(graph_.nodes().size(), 0);
    const auto join = [&](size_t n, ValueId variable, int floor) {
      if (variable != kNoValue)
        leads_[n] = leads_[n] == kNoValue || leads_[n] == variable ? variable : kMany;
      floor_[n] = std::max(floor_[n], floor);
    };
    for (const GraphUpdate& update : graph_.updates()) {
      const Node* node = graph_.producer(update.value);
      if (node != nullptr)
        join(static_cast<size_t>(graph_.IdOf(*node)), update.variable, VariableAt(update.variable));
    }
    for (const GraphOutput& output : graph_.outputs()) {
      const Node* node = graph_.producer(output.value);
      if (node != nullptr) join(static_cast<size_t>(graph_.IdOf(*node)), kMany, 0);
    }
    for (size_t n = graph_.nodes().size(); n-- > 0;) {
      for (ValueId id : graph_.nodes()[n].outputs)
        for (NodeId reader : uses_.ReadersOf(id))
          join(n, leads_[static_cast<size_t>(reader)], floor_[static_cast<size_t>(reader)]);
      if (places_.nodes[n].part == StepPart::kBackward && leads_[n] >= 0)
        places_.nodes[n].part = StepPart::kWeights;
    }
  }

  void PlaceBackward() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) {
      Place& place = places_.nodes[n];
      if (!place.is_backward()) continue;
      int reads_at = kNowhere, highest = INT_MAX;
      for (ValueId id : graph_.nodes()[n].inputs) {
        if (id == kNoValue) continue;
        const Place* input = PlaceOf(id);
        if (input != nullptr && input->is_backward()) {
          highest = std::min(highest, input->position);
        } else if (input != nullptr && input->part == StepPart::kForward) {
          reads_at = std::max(reads_at, input->position);
        } else if (IsVariable(graph_.value(id))) {
          reads_at = std::max(reads_at, VariableAt(id));
        }
      }
      const int last = places_.positions - 1;
      const int wanted = place.part == StepPart::kWeights ? VariableAt(leads_[n])
                         : reads_at == kNowhere           ? std::min(highest, last)
                                                          : std::max(reads_at, floor_[n]);
      place.position = std::max(0, std::min(wanted, highest));
    }
  }

  // Variables that only the backward pass reads, or nobody.
  void PlaceRest() {
    for (const Node& node : graph_.nodes()) {
      for (ValueId id : node.inputs)
        if (id != kNoValue && IsVariable(graph_.value(id)) && VariableAt(id) == kNowhere)
          VariableAt(id) = PlaceOf(node).position;
    }
    for (const GraphUpdate& update : graph_.updates()) {
      const Place* writer = PlaceOf(update.value);
      if (writer != nullptr && VariableAt(update.variable) == kNowhere)
        VariableAt(update.variable) = writer->position;
    }
  }

  // Between forward and backward of a micro batch run those of others.
  Status CheckVariables() {
    for (const GraphUpdate& update : graph_.updates()) {
      const Place* writer = PlaceOf(update.value);
      const bool forward = writer == nullptr || !writer->is_backward();
      for (NodeId reader : uses_.ReadersOf(update.variable)) {
        if (places_.nodes[static_cast<size_t>(reader)].is_backward() != forward) continue;
        return Status(
            ErrorCode::kUnsupported,
            fmt::format(
                "{}: '{}' is written by the {} pass and read by the other; between them run "
                "other micro batches. hint: leave --mesh p out",
                graph_.Where(graph_.node(reader)), graph_.value(update.variable).name,
                forward ? "forward" : "backward"));
      }
    }
    return Status();
  }

  const Graph& graph_;
  const GraphUses uses_;
  const ValueSet varies_;
  std::vector<int> variable_;   // by value
  std::vector<ValueId> leads_;  // by node
  std::vector<int> floor_;      // by node: the last variable whose update it leads to
  StepPlaces places_;
};

// Sets of variables of the update graph that one update reads together; known positions never
// join: what reads two of them is of all stages, such as the norm of all gradients.
class StateSets {
 public:
  StateSets(const Graph& update, StepPlaces& places)
      : graph_(update), places_(places), root_(update.values().size()) {
    std::iota(root_.begin(), root_.end(), 0);
    of_.assign(update.values().size(), kNoValue);
  }

  void Run() {
    for (ValueId id : VariablesOf(graph_)) of_[static_cast<size_t>(id)] = id;
    for (const Node& node : graph_.nodes()) {
      ValueId set = kNoValue;
      bool of_all = false;
      for (ValueId id : node.inputs) {
        const ValueId other = id == kNoValue ? kNoValue : of_[static_cast<size_t>(id)];
        if (other != kNoValue) of_all |= !Join(set, other);
      }
      for (ValueId id : node.outputs) of_[static_cast<size_t>(id)] = of_all ? kNoValue : set;
    }
    for (const GraphUpdate& update : graph_.updates()) {
      ValueId set = update.variable;
      const ValueId value = of_[static_cast<size_t>(update.value)];
      if (value != kNoValue) Join(set, value);
    }
    for (ValueId id : VariablesOf(graph_))
      places_.variables.try_emplace(graph_.value(id).name, std::max(0, PositionOf(id)));
  }

 private:
  ValueId Root(ValueId id) {
    while (root_[static_cast<size_t>(id)] != id) id = root_[static_cast<size_t>(id)];
    return id;
  }
  int PositionOf(ValueId id) {
    const ValueId root = Root(id);
    const auto found = places_.variables.find(graph_.value(root).name);
    return found == places_.variables.end() ? kNowhere : found->second;
  }
  // False: both have positions, and these differ.
  bool Join(ValueId& set, ValueId other) {
    if (set == kNoValue) {
      set = other;
      return true;
    }
    const ValueId a = Root(set), b = Root(other);
    const int at = PositionOf(a), other_at = PositionOf(b);
    if (at != kNowhere && other_at != kNowhere) return at == other_at;
    if (at == kNowhere) {
      root_[static_cast<size_t>(a)] = b;
    } else {
      root_[static_cast<size_t>(b)] = a;
    }
    return true;
  }

  const Graph& graph_;
  StepPlaces& places_;
  std::vector<ValueId> root_;
  std::vector<ValueId> of_;  // by value: a variable of its set
};

}  // namespace

Result<StepPlaces> PlaceStep(const Graph& micro, const Graph& update) {
  RIDGE_ASSIGN_OR_RETURN(StepPlaces places, Placing(micro).Run());
  StateSets(update, places).Run();
  return places;
}

bool IsUpdated(const Graph& graph, const std::string& variable) {
  return std::any_of(
      graph.updates().begin(), graph.updates().end(),
      [&](const GraphUpdate& update) { return graph.value(update.variable).name == variable; });
}

}  // namespace ridge

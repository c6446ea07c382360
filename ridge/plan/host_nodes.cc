#include "ridge/plan/host_nodes.h"

#include <algorithm>

#include "ridge/graph/uses.h"
#include "ridge/plan/persistent_region.h"

namespace ridge {
namespace {

// Of rates, factors and norms, which cross in the time of a copy's start.
constexpr int64_t kFewBytes = 256;
// What a host computes while a byte crosses: some 1,000 GFLOP/s beside 55 GB/s.
constexpr int64_t kFlopsPerByte = 16;

// One graph of the program, and which of its nodes are on the host so far.
class HostWalk {
 public:
  HostWalk(const Graph& graph, const std::set<Dims>& shapes, std::set<std::string>& variables)
      : graph_(graph),
        shapes_(shapes),
        variables_(variables),
        uses_(graph),
        on_host_(graph.nodes().size()) {}

  // Whether nodes or variables were added.
  bool Extend() {
    bool grew = false;
    for (const GraphUpdate& update : graph_.updates()) {
      const ValueInfo& value = graph_.value(update.value);
      if (Averages(update)) grew |= AddVariable(update.variable);
      if (variables_.contains(graph_.value(update.variable).name) &&
          value.kind == ValueKind::kResult)
        grew |= Add(value.producer);
    }
    for (size_t n = 0; n < on_host_.size(); ++n) {
      const auto id = static_cast<NodeId>(n);
      if (!on_host_[n] && BelongsThere(graph_.node(id))) grew |= Add(id);
    }
    return grew;
  }

  std::vector<bool> Take() { return std::move(on_host_); }

 private:
  bool Runs(NodeId n) const { return on_host_[static_cast<size_t>(n)]; }

  bool AddVariable(ValueId id) { return variables_.insert(graph_.value(id).name).second; }

  bool Add(NodeId n) {
    if (Runs(n)) return false;
    on_host_[static_cast<size_t>(n)] = true;
    const Node& node = graph_.node(n);
    if (!IsOptimizer(node)) return true;
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) AddStates(input, graph_.type(node.outputs[0]).elements());
    }
    return true;
  }

  // States that an update of so many elements reads: moments, and the sum that its gradient is
  // made of.
  void AddStates(ValueId id, int64_t elements) {
    const ValueInfo& value = graph_.value(id);
    if (IsVariable(value)) {
      if (elements > 1 && value.type.elements() == elements) (void)AddVariable(id);
      return;
    }
    if (value.kind != ValueKind::kResult || !HasShape(id) || !IsPointwise(value.producer)) return;
    for (const ValueId input : graph_.node(value.producer).inputs) {
      if (input != kNoValue && (!IsVariable(graph_.value(input)) || IsSum(input)))
        AddStates(input, elements);
    }
  }

  bool IsSum(ValueId id) const { return graph_.value(id).role == ValueRole::kGradient; }

  // Whether it averages, element by element, what the host made.
  bool Averages(const GraphUpdate& update) const {
    const ValueInfo& value = graph_.value(update.value);
    if (value.kind != ValueKind::kResult || !HasShape(update.variable) ||
        !IsPointwise(value.producer))
      return false;
    const std::vector<ValueId>& inputs = graph_.node(value.producer).inputs;
    const auto is_made_there = [&](ValueId id) {
      return id != kNoValue && !IsVariable(graph_.value(id)) && IsThere(id);
    };
    return std::find(inputs.begin(), inputs.end(), update.variable) != inputs.end() &&
           std::any_of(inputs.begin(), inputs.end(), is_made_there);
  }

  bool IsPointwise(NodeId n) const {
    return graph_.node(n).op->cost_class == CostClass::kElementwise;
  }

  bool HasShape(ValueId id) const { return shapes_.contains(graph_.type(id).dims); }

  // A variable that rests there, or what a node there made of a parameter's shape.
  bool IsThere(ValueId id) const {
    const ValueInfo& value = graph_.value(id);
    if (IsVariable(value)) return variables_.contains(value.name);
    return value.kind == ValueKind::kResult && Runs(value.producer) && HasShape(id);
  }

  bool BelongsThere(const Node& node) const {
    const Crossing inputs = InputsOf(node);
    const int64_t made = BytesOf(node.outputs);
    const bool makes_for_host = MakesForHost(node);
    const bool crosses_less =
        makes_for_host ? inputs.to_host <= made
                       : inputs.to_device > 0 && inputs.to_host + made <= inputs.to_device;
    if (!crosses_less) return false;
    const int64_t moved = makes_for_host ? made : inputs.to_device;
    return node.op->cost(graph_.Call(node)).flops <= kFlopsPerByte * moved;
  }

  // Bytes of a node's inputs that cross where it runs on the other side.
  struct Crossing {
    int64_t to_host = 0, to_device = 0;
  };
  Crossing InputsOf(const Node& node) const {
    Crossing bytes;
    for (const ValueId id : node.inputs) {
      if (id == kNoValue || graph_.type(id).bytes() <= kFewBytes) continue;
      (IsThere(id) ? bytes.to_device : bytes.to_host) += graph_.type(id).bytes();
    }
    return bytes;
  }

  int64_t BytesOf(const std::vector<ValueId>& values) const {
    int64_t bytes = 0;
    for (const ValueId id : values) bytes += graph_.type(id).bytes();
    return bytes;
  }

  // It makes a value of a parameter's shape, which nodes on the host read, and others only to make
  // few numbers of it.
  bool MakesForHost(const Node& node) const {
    bool has_shape = false, is_read_there = false;
    for (const ValueId id : node.outputs) {
      const auto readers = uses_.ReadersOf(id);
      if (!uses_.OnlyNodesRead(id) || readers.empty()) return false;
      for (const NodeId reader : readers) {
        if (!Runs(reader) && !MakesFew(graph_.node(reader))) return false;
        is_read_there |= Runs(reader);
      }
      has_shape |= HasShape(id);
    }
    return has_shape && is_read_there;
  }

  // A norm, or what it squares first.
  bool MakesFew(const Node& node) const {
    if (BytesOf(node.outputs) <= kFewBytes) return true;
    if (node.op->cost_class != CostClass::kElementwise) return false;
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      const auto readers = uses_.ReadersOf(id);
      return uses_.OnlyNodesRead(id) && !readers.empty() &&
             std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
               return BytesOf(graph_.node(reader).outputs) <= kFewBytes;
             });
    });
  }

  const Graph& graph_;
  const std::set<Dims>& shapes_;
  std::set<std::string>& variables_;
  const GraphUses uses_;
  std::vector<bool> on_host_;
};

}  // namespace

HostNodes FindHostNodes(const std::vector<NamedGraph>& graphs,
                        const std::vector<std::string>& parameters) {
  HostNodes found;
  if (parameters.empty()) {
    for (const NamedGraph& named : graphs) found.nodes.emplace_back(named.graph.nodes().size());
    return found;
  }
  found.variables.insert(parameters.begin(), parameters.end());
  std::set<Dims> shapes;
  for (const NamedGraph& named : graphs) {
    for (const ValueInfo& value : named.graph.values()) {
      if (IsVariable(value) && found.variables.contains(value.name)) shapes.insert(value.type.dims);
    }
  }
  std::vector<HostWalk> walks;
  for (const NamedGraph& named : graphs) walks.emplace_back(named.graph, shapes, found.variables);
  for (bool grew = true; grew;) {
    grew = false;
    for (HostWalk& walk : walks) grew |= walk.Extend();
  }
  for (HostWalk& walk : walks) found.nodes.push_back(walk.Take());
  return found;
}

}  // namespace ridge

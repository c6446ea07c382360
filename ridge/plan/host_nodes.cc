#include "ridge/plan/host_nodes.h"

#include <algorithm>

#include "ridge/graph/uses.h"
#include "ridge/plan/persistent_region.h"

namespace ridge {
namespace {

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

  bool Add(NodeId n) {
    if (Runs(n)) return false;
    on_host_[static_cast<size_t>(n)] = true;
    const Node& node = graph_.node(n);
    if (!IsOptimizer(node)) return true;
    for (const ValueId input : node.inputs) {
      if (input == kNoValue || !IsVariable(graph_.value(input))) continue;
      const int64_t elements = graph_.type(input).elements();
      if (elements > 1 && elements == graph_.type(node.outputs[0]).elements())
        variables_.insert(graph_.value(input).name);
    }
    return true;
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
    if (MakesForHost(node)) return inputs.to_host <= made;
    return inputs.to_device > 0 && inputs.to_host + made <= inputs.to_device;
  }

  // Bytes of a node's inputs that cross where it runs on the other side.
  struct Crossing {
    int64_t to_host = 0, to_device = 0;
  };
  Crossing InputsOf(const Node& node) const {
    Crossing bytes;
    for (const ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      (IsThere(id) ? bytes.to_device : bytes.to_host) += graph_.type(id).bytes();
    }
    return bytes;
  }

  int64_t BytesOf(const std::vector<ValueId>& values) const {
    int64_t bytes = 0;
    for (const ValueId id : values) bytes += graph_.type(id).bytes();
    return bytes;
  }

  // It makes a value of a parameter's shape, and only nodes on the host read what it makes.
  bool MakesForHost(const Node& node) const {
    bool has_shape = false;
    for (const ValueId id : node.outputs) {
      const auto readers = uses_.ReadersOf(id);
      if (!uses_.OnlyNodesRead(id) || readers.empty()) return false;
      if (!std::all_of(readers.begin(), readers.end(), [&](NodeId n) { return Runs(n); }))
        return false;
      has_shape |= HasShape(id);
    }
    return has_shape;
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

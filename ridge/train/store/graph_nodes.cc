#include "ridge/train/store/graph_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ridge {
namespace {

const char* LeafOp(ValueKind kind) {
  if (kind == ValueKind::kInput) return "Input";
  if (kind == ValueKind::kConstant) return "Constant";
  return kind == ValueKind::kState ? "State" : "Parameter";
}

// A name that is also a box ("fc" beside "fc/weight") would be drawn twice.
class Names {
 public:
  explicit Names(const Graph& graph) {
    for (const ValueInfo& value : graph.values()) {
      for (size_t dot = value.name.find('.'); dot != std::string::npos;
           dot = value.name.find('.', dot + 1))
        boxes_.insert(value.name.substr(0, dot));
    }
  }

  std::string Of(const std::string& value) const {
    std::string name =
        boxes_.contains(value) ? value + ".(" + value.substr(value.rfind('.') + 1) + ")" : value;
    std::replace(name.begin(), name.end(), '.', '/');
    return name;
  }

 private:
  std::set<std::string, std::less<>> boxes_;
};

}  // namespace

std::vector<GraphNode> GraphNodes(const Graph& graph) {
  const Names names(graph);
  std::vector<GraphNode> nodes;
  for (const ValueInfo& value : graph.values()) {
    if (value.kind == ValueKind::kResult) continue;
    nodes.push_back({names.Of(value.name), LeafOp(value.kind), {}, {value.type.dims}});
  }
  // The name of the node that makes a value; of its second result "NAME:1".
  const auto reference = [&](ValueId id) {
    const ValueInfo& value = graph.value(id);
    if (value.kind != ValueKind::kResult || value.output_index == 0) return names.Of(value.name);
    const Node& node = graph.node(value.producer);
    return fmt::format("{}:{}", names.Of(graph.value(node.outputs[0]).name), value.output_index);
  };
  for (const Node& node : graph.nodes()) {
    GraphNode shown{names.Of(graph.value(node.outputs[0]).name), node.op->name, {}, {}};
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) shown.inputs.push_back(reference(input));
    }
    for (const ValueId output : node.outputs) shown.shapes.push_back(graph.type(output).dims);
    nodes.push_back(std::move(shown));
  }
  return nodes;
}

}  // namespace ridge

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

// "relu_3" of a relu: nobody has named it.
bool IsUnnamed(const std::string& name, const std::string& op) {
  if (!name.starts_with(op)) return false;
  const std::string number = name.substr(op.size());
  return number.empty() || (number[0] == '_' && number.size() > 1 &&
                            number.find_first_not_of("0123456789", 1) == std::string::npos);
}

// What lies before the last dot, with it.
std::string BoxOf(const std::string& name) { return name.substr(0, name.rfind('.') + 1); }

// The names of all values.  A result without a name of its own lies in the box of what it reads; a
// name that is also a box ("fc" beside "fc.weight") goes into it, else it would be drawn twice.
std::vector<std::string> NamesOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueInfo& value : graph.values()) names.push_back(value.name);
  const auto name = [&](ValueId id) -> std::string& { return names[static_cast<size_t>(id)]; };
  for (const Node& node : graph.nodes()) {
    std::string box;
    for (const ValueId input : node.inputs) {
      if (box.empty() && input != kNoValue) box = BoxOf(name(input));
    }
    std::string& first = name(node.outputs[0]);
    if (IsUnnamed(first, node.op->name)) first = box + first;
  }
  std::set<std::string, std::less<>> boxes;
  for (const std::string& of_value : names) {
    for (size_t dot = of_value.find('.'); dot != std::string::npos;
         dot = of_value.find('.', dot + 1))
      boxes.insert(of_value.substr(0, dot));
  }
  for (std::string& of_value : names) {
    if (boxes.contains(of_value)) of_value += ".(" + of_value.substr(of_value.rfind('.') + 1) + ")";
    std::replace(of_value.begin(), of_value.end(), '.', '/');
  }
  return names;
}

}  // namespace

std::vector<GraphNode> GraphNodes(const Graph& graph) {
  const std::vector<std::string> names = NamesOf(graph);
  const auto name = [&](ValueId id) { return names[static_cast<size_t>(id)]; };
  std::vector<GraphNode> nodes;
  for (size_t v = 0; v < names.size(); ++v) {
    const ValueInfo& value = graph.values()[v];
    if (value.kind == ValueKind::kResult) continue;
    nodes.push_back({names[v], LeafOp(value.kind), {}, {value.type.dims}});
  }
  // The name of the node that makes a value; of its second result "NAME:1".
  const auto reference = [&](ValueId id) {
    const ValueInfo& value = graph.value(id);
    if (value.kind != ValueKind::kResult || value.output_index == 0) return name(id);
    const Node& node = graph.node(value.producer);
    return fmt::format("{}:{}", name(node.outputs[0]), value.output_index);
  };
  for (const Node& node : graph.nodes()) {
    GraphNode shown{name(node.outputs[0]), node.op->name, {}, {}};
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) shown.inputs.push_back(reference(input));
    }
    for (const ValueId output : node.outputs) shown.shapes.push_back(graph.type(output).dims);
    nodes.push_back(std::move(shown));
  }
  return nodes;
}

}  // namespace ridge

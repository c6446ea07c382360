#include "ridge/lower/narrow_inputs.h"

#include <map>
#include <optional>
#include <string>

#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

using NarrowTypes = std::map<std::string, std::optional<DType>>;  // by input; none: it stays

// That of 16 bits to which all readers cast the input.
std::optional<DType> CastType(const Graph& graph, const GraphUses& uses, ValueId input) {
  const TensorType& type = graph.type(input);
  if (type.dtype != DType::kF32 || type.elements() <= 1) return std::nullopt;
  if (!uses.OnlyNodesRead(input)) return std::nullopt;
  std::optional<DType> found;
  for (const NodeId reader : uses.ReadersOf(input)) {
    const Node& node = graph.node(reader);
    const DType to = graph.type(node.outputs[0]).dtype;
    if (node.op->name != "cast" || !Is16BitFloat(to) || found.value_or(to) != to)
      return std::nullopt;
    found = to;
  }
  return found;
}

// An input that a graph has and does not read says nothing.
void Agree(const Graph& graph, NarrowTypes& types) {
  const GraphUses uses(graph);
  for (const ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    if (uses.ReadsOf(id) == 0) continue;
    const std::optional<DType> here = CastType(graph, uses, id);
    const auto [known, is_new] = types.emplace(graph.value(id).name, here);
    if (!is_new && known->second != here) known->second.reset();
  }
}

Result<Graph> Narrow(Graph graph, const NarrowTypes& types) {
  bool any = false;
  for (const ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    const auto found = types.find(graph.value(id).name);
    if (found == types.end() || !found->second) continue;
    graph.mutable_value(id).type.dtype = *found->second;
    any = true;
  }
  if (!any) return graph;
  GraphRewriter rewriter(graph);
  RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) {
    const bool is_cast = node.op->name == "cast" &&
                         graph.value(node.inputs[0]).kind == ValueKind::kInput &&
                         graph.type(node.inputs[0]) == graph.type(node.outputs[0]);
    if (!is_cast) return rewriter.Copy(node);
    rewriter.Set(node.outputs[0], rewriter.Map(node.inputs[0]));
    return Status();
  }));
  return rewriter.Finish();
}

}  // namespace

Result<std::vector<NamedGraph>> NarrowInputs(std::vector<NamedGraph> graphs) {
  NarrowTypes types;
  for (const NamedGraph& named : graphs) Agree(named.graph, types);
  for (NamedGraph& named : graphs) {
    RIDGE_ASSIGN_OR_RETURN(named.graph, Narrow(std::move(named.graph), types));
  }
  return graphs;
}

}  // namespace ridge

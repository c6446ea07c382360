// Each round tries smaller graphs until one still fails, and goes on from there.  From the loss
// up: a node's result is replaced by one of its inputs, or by a parameter.  Then extents.
#include "tests/generate/shrink.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

using Fails = std::function<bool(const Graph&)>;

// The graph with `by` (or a new parameter) in the place of the first output of node n.
std::optional<Graph> Without(const Graph& graph, size_t n, ValueId by) {
  const std::string cut = graph.UniqueName("cut");
  GraphRewriter rewriter(graph);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const bool stays = i != n || node.outputs.size() > 1;
    if (stays && !rewriter.Copy(node).ok()) return std::nullopt;
    if (i != n) continue;
    ValueInfo leaf;
    leaf.name = cut;
    leaf.type = graph.type(node.outputs[0]);
    leaf.kind = ValueKind::kParameter;
    leaf.init = Init::Uniform(1);
    rewriter.Set(node.outputs[0],
                 by != kNoValue ? rewriter.Use(by) : rewriter.AddLeaf(std::move(leaf)));
  }
  Result<Graph> built = rewriter.Finish();
  if (!built.ok()) return std::nullopt;
  Result<Graph> needed = KeepNeeded(*built);
  return needed.ok() ? std::optional(std::move(*needed)) : std::nullopt;
}

// Every replacement of node n's result that makes the graph smaller.
std::vector<Graph> Smaller(const Graph& graph, size_t n) {
  std::vector<Graph> smaller;
  const Node& node = graph.nodes()[n];
  const TensorType& type = graph.type(node.outputs[0]);
  if (!IsFloat(type.dtype)) return smaller;
  for (ValueId input : node.inputs) {
    if (input == kNoValue || !(graph.type(input) == type)) continue;
    if (auto less = Without(graph, n, input)) smaller.push_back(std::move(*less));
  }
  if (auto less = Without(graph, n, kNoValue)) smaller.push_back(std::move(*less));
  return smaller;
}

bool ShrinkNodes(Graph& graph, const Fails& fails) {
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    for (Graph& less : Smaller(graph, n)) {
      if (less.nodes().size() >= graph.nodes().size() || !fails(less)) continue;
      graph = std::move(less);
      return true;
    }
  }
  return false;
}

Tensor Resized(const Tensor& tensor, const Dims& dims) {
  Tensor to({tensor.type().dtype, dims});
  for (int64_t i = 0; i < to.elements(); ++i)
    StoreFromDouble(to.type().dtype, to.mutable_data(), i, tensor.at(i % tensor.elements()));
  return to;
}

Dims Replaced(Dims dims, int64_t from, int64_t to) {
  std::replace(dims.begin(), dims.end(), from, to);
  return dims;
}

// Attributes that hold extents.
bool HoldsExtents(const std::string& attr) {
  return attr == "dims" || attr == "input_dims" || attr == "weight_dims" || attr == "kernel";
}

// The graph with extent `to` wherever it has `from`; nothing when it does not hold together then.
std::optional<Graph> WithExtent(const Graph& graph, int64_t from, int64_t to) {
  Graph out;
  out.name = graph.name;
  std::vector<ValueId> map(graph.values().size(), kNoValue);
  for (size_t i = 0; i < map.size(); ++i) {
    const ValueInfo& info = graph.values()[i];
    if (info.kind == ValueKind::kResult) continue;
    const bool rng = info.name == "rng";
    const TensorType type{info.type.dtype,
                          rng ? info.type.dims : Replaced(info.type.dims, from, to)};
    if (info.kind == ValueKind::kInput) {
      map[i] = out.AddInput(info.name, type);
    } else if (info.kind == ValueKind::kConstant) {
      map[i] = out.AddConstant(info.name, Resized(info.constant, type.dims));
    } else {
      Init init = info.init;
      if (init.kind == Init::Kind::kTensor) init.tensor = Resized(init.tensor, type.dims);
      map[i] = out.AddVariable(info.kind, info.name, type, std::move(init));
      out.mutable_value(map[i]).trainable = info.trainable;
      out.mutable_value(map[i]).role = info.role;
    }
  }
  for (const Node& node : graph.nodes()) {
    AttrMap attrs;
    for (const auto& [name, attr] : node.attrs) {
      const auto* list = std::get_if<std::vector<int64_t>>(&attr);
      attrs[name] = list != nullptr && HoldsExtents(name) ? Attr(Replaced(*list, from, to)) : attr;
    }
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs)
      inputs.push_back(id == kNoValue ? kNoValue : map[static_cast<size_t>(id)]);
    std::vector<std::string> names;
    for (ValueId id : node.outputs) names.push_back(graph.value(id).name);
    const Result<NodeId> made = out.AddNode(*node.op, inputs, attrs, names);
    if (!made.ok()) return std::nullopt;
    for (size_t k = 0; k < node.outputs.size(); ++k)
      map[static_cast<size_t>(node.outputs[k])] = out.node(*made).outputs[k];
  }
  for (const GraphOutput& output : graph.outputs())
    out.AddOutput(output.name, map[static_cast<size_t>(output.value)]);
  for (const GraphUpdate& update : graph.updates()) {
    const ValueId variable = map[static_cast<size_t>(update.variable)];
    const ValueId value = map[static_cast<size_t>(update.value)];
    if (!(out.type(variable) == out.type(value))) return std::nullopt;
    out.AddUpdate(variable, value);
  }
  return out;
}

int64_t Elements(const Graph& graph) {
  int64_t elements = 0;
  for (const ValueInfo& info : graph.values()) elements += info.type.elements();
  return elements;
}

bool ShrinkExtents(Graph& graph, const Fails& fails) {
  std::set<int64_t> extents;
  for (const ValueInfo& info : graph.values()) {
    for (int64_t extent : info.type.dims) extents.insert(extent);
  }
  for (const int64_t from : extents) {
    for (const int64_t to : {1, 2}) {
      if (to >= from) continue;
      const std::optional<Graph> less = WithExtent(graph, from, to);
      if (!less || Elements(*less) >= Elements(graph) || !fails(*less)) continue;
      graph = *less;
      return true;
    }
  }
  return false;
}

bool DropUpdates(Graph& graph, const Fails& fails) {
  if (graph.updates().empty()) return false;
  Graph less = graph;
  less.ClearUpdates();
  const Result<Graph> needed = KeepNeeded(less);
  if (!needed.ok() || !fails(*needed)) return false;
  graph = *needed;
  return true;
}

}  // namespace

Graph Shrink(Graph graph, const Fails& fails) {
  while (DropUpdates(graph, fails) || ShrinkNodes(graph, fails) || ShrinkExtents(graph, fails)) {
  }
  return graph;
}

}  // namespace ridge

#include "ridge/lower/dequantize_late.h"

#include <algorithm>

#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

constexpr std::string_view kDequantize = "dequantize_nf4";

bool IsDequantize(const Node& node) { return node.op->name == kDequantize; }

class Copier {
 public:
  explicit Copier(const Graph& graph) : graph_(graph), uses_(graph), rewriter_(graph) {}

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) { return Visit(node); }));
    return rewriter_.Finish();
  }

 private:
  // Floats that only nodes read are made where they are read.
  bool IsMadeLate(const Node& node) const {
    return IsDequantize(node) && uses_.OnlyNodesRead(node.outputs[0]);
  }

  // The node that makes the floats of a value, directly or through a cast; nullptr: none does.
  const Node* Source(ValueId id) const {
    const Node* node = graph_.producer(id);
    if (node == nullptr || !uses_.OnlyNodesRead(id)) return nullptr;
    if (IsDequantize(*node)) return node;
    if (node->op->name != "cast" || !IsFloat(graph_.type(id).dtype)) return nullptr;
    return graph_.producer(node->inputs[0], kDequantize);
  }

  Status Visit(const Node& node) {
    // What is not copied here is copied for its readers.
    if (IsMadeLate(node) || Source(node.outputs[0]) != nullptr) return Status();
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      const Node* source = id == kNoValue ? nullptr : Source(id);
      ValueId now = rewriter_.Map(id);
      if (source != nullptr) {
        RIDGE_ASSIGN_OR_RETURN(now, Again(id, *source));
      }
      inputs.push_back(now);
    }
    return rewriter_.CopyOn(node, std::move(inputs));
  }

  Result<ValueId> Again(ValueId id, const Node& source) {
    const ValueInfo& value = graph_.value(id);
    AttrMap attrs = source.attrs;
    attrs["to"] = std::string(DTypeName(value.type.dtype));
    return rewriter_.AddNamedNode(*source.op, rewriter_.Map(source.inputs), std::move(attrs),
                                  rewriter_.FreshName(value.name), source.location);
  }

  const Graph& graph_;
  const GraphUses uses_;
  GraphRewriter rewriter_;
};

}  // namespace

Result<Graph> DequantizeLate(Graph graph) {
  if (std::none_of(graph.nodes().begin(), graph.nodes().end(), IsDequantize)) return graph;
  return Copier(graph).Run();
}

}  // namespace ridge

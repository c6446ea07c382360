#include "ridge/learn/narrow_form.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ridge/graph/keep_f32.h"
#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

bool IsProduct(const Node& node) { return node.op->name == "matmul" || node.op->name == "conv"; }

// The first inputs of a node, of which those of f32 are read in 16 bits; 0: none.
size_t NarrowInputs(const Graph& graph, const Node& node) {
  if (node.inputs.empty() || graph.type(node.inputs[0]).dtype != DType::kF32) return 0;
  if (KeepsF32(node.attrs)) return 0;
  if (IsProduct(node)) return 2;
  if (node.op->name == "attention") return 4;  // queries, keys, values, mask
  const bool of_table = graph.value(node.inputs[0]).kind == ValueKind::kParameter;
  return node.op->name == "gather" && of_table ? 1 : 0;
}

class Narrower {
 public:
  Narrower(const Graph& from, DType narrow)
      : from_(from), narrow_(narrow), kept_(from.values().size(), false), rewriter_(from) {
    for (const Node& node : from.nodes()) {
      const size_t count = std::min(NarrowInputs(from, node), node.inputs.size());
      for (size_t i = 0; i < count; ++i) Keep(node.inputs[i]);
    }
  }

  Result<Graph> Run() {
    // Inputs in their order, whatever is read first.
    for (const ValueId id : from_.ValuesOfKind(ValueKind::kInput)) rewriter_.Use(id);
    for (const Node& node : from_.nodes()) RIDGE_RETURN_IF_ERROR(Visit(node));
    return rewriter_.Finish();
  }

 private:
  void Keep(ValueId id) {
    if (id == kNoValue || from_.value(id).kind != ValueKind::kParameter) return;
    kept_[static_cast<size_t>(id)] = from_.type(id).dtype == DType::kF32;
  }

  Status Visit(const Node& node) {
    const size_t count = NarrowInputs(from_, node);
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      RIDGE_ASSIGN_OR_RETURN(const ValueId id,
                             i < count ? Narrow(node.inputs[i]) : Wide(node.inputs[i]));
      inputs.push_back(id);
    }
    if (count == 0) return rewriter_.CopyOn(node, std::move(inputs));
    if (!IsProduct(node)) return EmitNarrow(node, std::move(inputs));
    AttrMap attrs = node.attrs;
    attrs["out_dtype"] = std::string(DTypeName(DType::kF32));
    return rewriter_.Emit(*node.op, std::move(inputs), std::move(attrs), node.outputs,
                          node.location);
  }

  // A node whose result has the type of its inputs, and the cast back.
  Status EmitNarrow(const Node& node, std::vector<ValueId> inputs) {
    const std::string name = from_.value(node.outputs[0]).name + "." + DTypeName(narrow_);
    RIDGE_ASSIGN_OR_RETURN(const ValueId made,
                           rewriter_.AddNamedNode(*node.op, std::move(inputs), node.attrs,
                                                  rewriter_.FreshName(name), node.location));
    return rewriter_.Emit(Cast(), {made}, CastTo(DType::kF32), {node.outputs[0]}, node.location);
  }

  static const OpDef& Cast() {
    static const OpDef& cast = *FindOp("cast");
    return cast;
  }
  static AttrMap CastTo(DType type) {
    AttrMap attrs = Cast().attr_defaults;
    attrs["to"] = std::string(DTypeName(type));
    return attrs;
  }

  Result<ValueId> AddCast(ValueId of, ValueId old, DType type) {
    const std::string name = from_.value(old).name + "." + DTypeName(type);
    return rewriter_.AddNamedNode(Cast(), {of}, CastTo(type), rewriter_.FreshName(name), "");
  }

  bool IsKept(ValueId id) const { return kept_[static_cast<size_t>(id)]; }

  Result<ValueId> Narrow(ValueId id) {
    if (id == kNoValue || from_.type(id).dtype != DType::kF32) return rewriter_.Use(id);
    if (const auto known = narrows_.find(id); known != narrows_.end()) return known->second;
    ValueId made = kNoValue;
    if (IsKept(id)) {
      ValueInfo leaf = from_.value(id);
      leaf.type.dtype = narrow_;
      made = rewriter_.AddLeaf(std::move(leaf));
    } else {
      RIDGE_ASSIGN_OR_RETURN(made, AddCast(rewriter_.Use(id), id, narrow_));
    }
    narrows_[id] = made;
    return made;
  }

  Result<ValueId> Wide(ValueId id) {
    if (id == kNoValue || !IsKept(id)) return rewriter_.Use(id);
    if (const auto known = wides_.find(id); known != wides_.end()) return known->second;
    RIDGE_ASSIGN_OR_RETURN(const ValueId leaf, Narrow(id));
    RIDGE_ASSIGN_OR_RETURN(const ValueId made, AddCast(leaf, id, DType::kF32));
    wides_[id] = made;
    return made;
  }

  const Graph& from_;
  const DType narrow_;
  std::vector<bool> kept_;  // by value: a parameter that is kept in 16 bits
  GraphRewriter rewriter_;
  std::map<ValueId, ValueId> narrows_, wides_;  // by old value
};

}  // namespace

Result<Graph> NarrowForm(const Graph& inference, DType narrow) {
  return Narrower(inference, narrow).Run();
}

}  // namespace ridge

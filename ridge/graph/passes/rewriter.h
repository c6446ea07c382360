// GraphRewriter: copies a graph value by value; the pass decides what replaces each node.
//
//   GraphRewriter rewriter(graph);
//   RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) { return rewriter.Copy(node); }));
//   return rewriter.Finish();
//
// Without Walk the caller copies nodes itself, and leaves are copied where they are first used.
// Names, roles, locations, outputs and updates are kept.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

class GraphRewriter {
 public:
  // `from` must outlive the rewriter.
  explicit GraphRewriter(const Graph& from);

  const Graph& from() const { return from_; }
  const Graph& to() const { return to_; }

  // Copies inputs, variables and constants, and calls `visit` for each node, in the order of
  // values.  `visit` maps each output of the node to a new value, by Copy, Emit or Set.
  Status Walk(const std::function<Status(const Node&)>& visit);
  // Instead of Walk: copies all leaves; the caller adds the nodes in its own order.
  void CopyLeaves();

  // Copies only these constants, by old ValueId.  REQUIRES: no output and no kept node needs the
  // others.
  void KeepConstants(std::vector<bool> keep) { keep_ = std::move(keep); }

  // The new value of `old`, kNoValue until there is one.  kNoValue maps to itself.
  ValueId Map(ValueId old) const;
  std::vector<ValueId> Map(const std::vector<ValueId>& old) const;
  // The same, but a leaf without a new value is copied.
  ValueId Use(ValueId old);
  std::vector<ValueId> Use(const std::vector<ValueId>& old);
  // Maps `old` to `now`, a value of the new graph.
  void Set(ValueId old, ValueId now);
  // Copies the node onto the new values of its inputs.
  Status Copy(const Node& node) { return CopyOn(node, Use(node.inputs)); }
  // The same onto these values of the new graph.
  Status CopyOn(const Node& node, std::vector<ValueId> inputs);
  // Replaces `old` by a constant of the same name.
  void SetConstant(ValueId old, Tensor tensor);
  // Adds a replacement node: its outputs [0, ...) replace `results`, values of the old graph, and
  // take their names and roles.
  Status Emit(const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
              const std::vector<ValueId>& results, const std::string& location);
  // A node with one output of exactly this name.  REQUIRES: the name is free in the new graph.
  Result<ValueId> AddNamedNode(const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
                               const std::string& name, const std::string& location);
  ValueId AddConstant(const std::string& wanted_name, Tensor tensor);
  // An input, variable or constant.  REQUIRES: its name is free in the new graph.
  ValueId AddLeaf(ValueInfo leaf) { return to_.AddLeaf(std::move(leaf)); }
  // A name that is free in both graphs, so no later copy collides with it.
  std::string FreshName(const std::string& wanted) const;

  Result<Graph> Finish();  // copies outputs and updates

 private:
  void CopyLeaf(ValueId id);

  const Graph& from_;
  Graph to_;
  std::vector<bool> keep_;    // by old ValueId; empty: all
  std::vector<ValueId> map_;  // by old ValueId; kNoValue until it is set
};

}  // namespace ridge

// GraphRewriter: copies a graph value by value while a pass decides what becomes of each node.
//
//   GraphRewriter rewriter(graph);
//   RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) { return rewriter.Copy(node); }));
//   return rewriter.Finish();
//
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
  // values.  `visit` gives each output of the node its new value, by Copy, Emit or Set.
  Status Walk(const std::function<Status(const Node&)>& visit);
  // Without Walk: copies all that no node writes; nodes follow in an order of the caller's.
  void CopyLeaves();

  // Copies only these constants, by old ValueId.  REQUIRES: no output and no node that is kept
  // needs the others.
  void KeepConstants(std::vector<bool> keep) { keep_ = std::move(keep); }

  ValueId Map(ValueId old) const;  // kNoValue stays
  std::vector<ValueId> Map(const std::vector<ValueId>& old) const;
  // From now on `old` is `now`, a value of the new graph.
  void Set(ValueId old, ValueId now);
  // The node itself on the new values of its inputs.
  Status Copy(const Node& node) { return CopyOn(node, Map(node.inputs)); }
  // The same on these values of the new graph.
  Status CopyOn(const Node& node, std::vector<ValueId> inputs);
  // A constant in its place, of the same name.
  void SetConstant(ValueId old, Tensor tensor);
  // Another node in its place: outputs [0, ...) of it become `results`, values of the old graph,
  // whose names and roles they take.
  Status Emit(const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
              const std::vector<ValueId>& results, const std::string& location);
  // A node with one output that takes `name` as it is: REQUIRES: it is free in the new graph.
  Result<ValueId> AddNamedNode(const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
                               const std::string& name, const std::string& location);
  ValueId AddConstant(const std::string& wanted_name, Tensor tensor);
  // Free in both graphs, so that no later copy meets it.
  std::string FreshName(const std::string& wanted) const;

  Result<Graph> Finish();  // copies outputs and updates

 private:
  void CopyLeaf(ValueId id);

  const Graph& from_;
  Graph to_;
  std::vector<bool> keep_;    // by old ValueId; empty: all
  std::vector<ValueId> map_;  // by old ValueId; kNoValue until it is known
};

// How often each value is read: by nodes (once for each place), outputs and updates.
std::vector<int32_t> CountReads(const Graph& graph);

}  // namespace ridge

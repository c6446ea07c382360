// Graph: a computation as a list of typed nodes in topological order.
//
// Every value is written once (SSA).  Variables (parameters and states) are read as values; their
// new contents are `updates`, which take effect together after the last node.  So a training step
// with its optimizer is one pure function, and passes may reorder, merge and drop nodes freely.
// Names are unique.  A Graph is a value: copying is allowed, passes map Graph to Graph.
// Invariants are checked by CheckGraph() (verify.h) after every pass.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/chunked_vector.h"
#include "ridge/core/tensor.h"
#include "ridge/graph/name_table.h"
#include "ridge/graph/op_def.h"

namespace ridge {

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr ValueId kNoValue = -1;  // an absent optional input

enum class ValueKind : uint8_t {
  kInput,      // set by the caller in each step
  kParameter,  // trained
  kState,      // kept from step to step: statistics, optimizer state, gradient accumulators
  kConstant,
  kResult,  // output of a node
};

enum class ValueRole : uint8_t {
  kNone,
  kGradient,
  kOptimizer,
  kStatistic,
  kRecomputed,  // a result that is computed again for some of its readers, in equal bits
};

struct ValueInfo;

// Initial contents of a variable.  Values are drawn from Philox with (seed, hash of its name).
struct Init {
  // kNf4Codes, kNf4Scales: the two parts of another variable in 4 bits a number (core/nf4.h).
  enum class Kind : uint8_t {
    kZeros,
    kConstant,
    kUniform,
    kNormal,
    kTensor,
    kNf4Codes,
    kNf4Scales
  };
  Kind kind = Kind::kZeros;
  double scale = 0;  // constant: the value; uniform: in [-scale, scale); normal: standard deviation
  Tensor tensor;     // kTensor
  std::shared_ptr<const ValueInfo> quantized = nullptr;  // kNf4*: the variable, with its Init

  static Init Zeros() { return {}; }
  static Init Constant(double value) { return {Kind::kConstant, value, {}}; }
  static Init Uniform(double bound) { return {Kind::kUniform, bound, {}}; }
  static Init Normal(double standard_deviation) { return {Kind::kNormal, standard_deviation, {}}; }
  static Init FromTensor(Tensor tensor) { return {Kind::kTensor, 0, std::move(tensor)}; }
  static Init Nf4Codes(std::shared_ptr<const ValueInfo> of) {
    return {Kind::kNf4Codes, 0, {}, std::move(of)};
  }
  static Init Nf4Scales(std::shared_ptr<const ValueInfo> of) {
    return {Kind::kNf4Scales, 0, {}, std::move(of)};
  }
};

struct ValueInfo {
  std::string name;
  TensorType type;
  ValueKind kind = ValueKind::kResult;
  ValueRole role = ValueRole::kNone;
  NodeId producer = -1;                // kResult
  int output_index = 0;                // kResult
  Tensor constant;                     // kConstant
  Init init;                           // kParameter, kState
  bool trainable = true;               // kParameter
  std::vector<std::string> dim_names;  // kInput: "" where the extent is fixed; may be empty
};

struct Node {
  const OpDef* op = nullptr;
  AttrMap attrs;  // complete: defaults filled in
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::string location;  // where the user wrote it: "line 8"; may be empty
};

struct GraphOutput {
  std::string name;
  ValueId value;
};

// `variable` holds `value` from the next step on.
struct GraphUpdate {
  ValueId variable;
  ValueId value;
};

class Graph {
 public:
  std::string name = "graph";

  // Building.  Names must be free (see UniqueName).  GraphBuilder is more convenient.
  ValueId AddInput(std::string name, TensorType type, std::vector<std::string> dim_names = {});
  ValueId AddVariable(ValueKind kind, std::string name, TensorType type, Init init);
  ValueId AddConstant(std::string name, Tensor tensor);
  ValueId AddLeaf(ValueInfo leaf);  // one of these, as the leaf of another graph
  // Infers types.  output_names may be shorter than the operator's outputs; missing names are made
  // from the first.
  Result<NodeId> AddNode(const OpDef& op, std::vector<ValueId> inputs, AttrMap attrs,
                         std::vector<std::string> output_names, std::string location = "");
  // Copies a node of another graph onto inputs of this one.  Outputs keep name and role, and their
  // types if the inputs have the same types in both graphs; otherwise types are inferred.
  Result<NodeId> CopyNode(const Graph& from, const Node& node, std::vector<ValueId> inputs);
  void AddOutput(std::string name, ValueId value);
  void AddUpdate(ValueId variable, ValueId value);
  ValueInfo& mutable_value(ValueId id) { return values_.at(static_cast<size_t>(id)); }
  void ClearOutputs() { outputs_.clear(); }
  void ClearUpdates() { updates_.clear(); }
  void Rename(ValueId id, std::string name);  // REQUIRES: the name is free

  const ChunkedVector<ValueInfo>& values() const { return values_; }
  const ChunkedVector<Node>& nodes() const { return nodes_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  const std::vector<GraphUpdate>& updates() const { return updates_; }
  const ValueInfo& value(ValueId id) const { return values_.at(static_cast<size_t>(id)); }
  const Node& node(NodeId id) const { return nodes_.at(static_cast<size_t>(id)); }
  const TensorType& type(ValueId id) const { return value(id).type; }
  // The node that writes the value; nullptr: a leaf, or kNoValue.  Readers: uses.h.
  const Node* producer(ValueId id) const;
  // The same where it is of this operator, else nullptr.
  const Node* producer(ValueId id, std::string_view op) const;
  // REQUIRES: the node is one of this graph.
  NodeId IdOf(const Node& node) const { return value(node.outputs.at(0)).producer; }

  std::vector<ValueId> ValuesOfKind(ValueKind kind) const;  // in order of creation
  ValueId FindValue(std::string_view name) const;           // kNoValue when there is none
  ValueId FindOutput(std::string_view name) const;
  std::string UniqueName(const std::string& wanted) const;  // wanted, wanted_2, ...

  // "conv 'stem' (line 8)".
  std::string Where(const Node& node) const;
  // The call of a node with types filled in.
  OpCall Call(const Node& node) const;

  // Reserves space for `values` values in total.
  void Reserve(size_t values) { by_name_.Reserve(values); }

 private:
  ValueId AddValue(ValueInfo info);

  // Additions keep references to earlier values and nodes valid, so a caller may hold dims(v) while
  // it builds.
  ChunkedVector<ValueInfo> values_;
  ChunkedVector<Node> nodes_;
  std::vector<GraphOutput> outputs_;
  std::vector<GraphUpdate> updates_;
  NameTable by_name_;
};

// The same graph with its named dimensions bound to other extents and types inferred for them.
// Fails when a name is unknown or a type no longer holds.
Result<Graph> BindDims(const Graph& graph, const std::map<std::string, int64_t>& dims);

// Names of dimensions that are not yet bound ("f32[batch,784]" in a text graph), sorted.
std::vector<std::string> UnboundDims(const Graph& graph);

}  // namespace ridge

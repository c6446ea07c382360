// GraphBuilder: builds a Graph fluently; keeps the first error with its place.
//
//   GraphBuilder b("mlp");
//   Value x = b.Input("x", {DType::kF32, {128, 784}}, {"batch", ""});
//   Value h = b.Relu(b.Linear(x, 512, "fc1"));
//   b.Output("logits", b.Linear(h, 10, "fc2"));
//   Result<Graph> graph = b.Build();
//
// After an error every further call does nothing and returns an invalid Value; Build() returns the
// error.  Not thread-safe.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// Handle to a value of the graph under construction.
struct Value {
  ValueId id = kNoValue;
  bool valid() const { return id != kNoValue; }
  bool operator==(const Value&) const = default;
};

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) { graph_.name = std::move(name); }
  explicit GraphBuilder(Graph graph) : graph_(std::move(graph)) {}

  Value Input(const std::string& name, TensorType type, std::vector<std::string> dim_names = {});
  Value Parameter(const std::string& name, TensorType type, Init init);
  Value State(const std::string& name, TensorType type, Init init, ValueRole role);
  Value Constant(Tensor tensor, const std::string& name = "const");
  Value Scalar(DType dtype, double value);  // rank 0
  // A node with one output.  `name` names the output; the operator's name when empty.
  Value Op(const char* op, std::vector<Value> inputs, AttrMap attrs = {},
           const std::string& name = "");
  // A node with several outputs.
  std::vector<Value> OpOutputs(const char* op, std::vector<Value> inputs, AttrMap attrs = {},
                               const std::string& name = "");
  void Output(const std::string& name, Value value);
  void Update(Value variable, Value value);

  // Later calls evaluate nodes with constant inputs immediately and add their results as constants.
  // `work` bounds elements and bytes of results plus flops, over all such nodes; a node that
  // exceeds the rest of it is added as usual.
  void FoldConstants(int64_t work) { fold_work_ = work; }

  // Pointwise, broadcast as numpy does.
  Value Add(Value a, Value b) { return Op("add", {a, b}); }
  Value Sub(Value a, Value b) { return Op("sub", {a, b}); }
  Value Mul(Value a, Value b) { return Op("mul", {a, b}); }
  Value Div(Value a, Value b) { return Op("div", {a, b}); }
  Value MulScalar(Value a, double s);
  Value AddScalar(Value a, double s);
  Value Neg(Value a) { return Op("neg", {a}); }
  Value Exp(Value a) { return Op("exp", {a}); }
  Value Log(Value a) { return Op("log", {a}); }
  Value Sqrt(Value a) { return Op("sqrt", {a}); }
  Value Relu(Value a) { return Op("relu", {a}); }
  Value Where(Value condition, Value a, Value b) { return Op("where", {condition, a, b}); }
  Value Cast(Value a, DType to);  // a itself when it has that type

  // axes empty: all.
  Value ReduceSum(Value x, std::vector<int64_t> axes, bool keep_dims);
  Value ReduceMean(Value x, std::vector<int64_t> axes, bool keep_dims);
  Value MatMul(Value a, Value b, bool transpose_a = false, bool transpose_b = false);
  // One extent may be -1, which is inferred; 0 copies the extent of x at the same position.
  Value Reshape(Value x, Dims dims);
  Value Transpose(Value x, std::vector<int64_t> permutation);
  Value Expand(Value x, Dims dims);  // x broadcast to dims
  // Sums x over the axes along which `dims` is broadcast to x's shape: the gradient of Expand.
  Value SumTo(Value x, const Dims& dims);
  // x [.., in] -> [.., out] with parameters NAME.weight [out, in] and NAME.bias [out], both
  // uniform in +-1/sqrt(in) as PyTorch's nn.Linear.
  Value Linear(Value x, int64_t out, const std::string& name, bool bias = true);

  const TensorType& type(Value v) const;  // REQUIRES: v is valid
  const Dims& dims(Value v) const { return type(v).dims; }
  // The position in the caller's source ("line 8"); later nodes carry it.
  void set_location(std::string location) { location_ = std::move(location); }
  void Fail(Status status);  // keeps the first
  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  Result<Graph> Build() const&;
  Result<Graph> Build() &&;  // std::move(b).Build(): without a copy

 private:
  bool Folds(const std::vector<ValueId>& inputs) const;
  // The node's results as constants; empty when it exceeds the rest of fold_work_.
  std::vector<Value> Fold(const OpDef& op, const std::vector<ValueId>& inputs, const AttrMap& attrs,
                          const std::string& name);

  Graph graph_;
  Status status_;
  std::string location_;
  int64_t fold_work_ = 0;
};

// Emits gradient nodes for one forward node; see autodiff.cc for the walk.
class GradBuilder {
 public:
  GradBuilder(GraphBuilder& builder, const Node& node, std::vector<Value> output_grads,
              std::vector<bool> needs_grad);

  GraphBuilder& b() { return builder_; }
  Value input(size_t i) const;  // invalid when absent
  Value output(size_t i) const;
  // dL/d(output i), of the output's type; zeros when output i has no gradient.
  Value output_grad(size_t i);
  bool has_output_grad(size_t i) const { return output_grads_[i].valid(); }
  // False when input i is absent or its gradient is not wanted: skip its work.
  bool needs_grad(size_t i) const { return i < needs_grad_.size() && needs_grad_[i]; }
  void set_input_grad(size_t i, Value v);  // of the input's type; ignored when not wanted
  size_t input_count() const { return node_.inputs.size(); }
  const AttrMap& attrs() const { return node_.attrs; }
  int64_t integer(const std::string& name) const { return std::get<int64_t>(node_.attrs.at(name)); }
  double number(const std::string& name) const { return std::get<double>(node_.attrs.at(name)); }
  const std::vector<int64_t>& integers(const std::string& name) const {
    return std::get<std::vector<int64_t>>(node_.attrs.at(name));
  }

  const std::vector<Value>& input_grads() const { return input_grads_; }

 private:
  GraphBuilder& builder_;
  Node node_;  // a copy
  std::vector<Value> output_grads_;
  std::vector<bool> needs_grad_;
  std::vector<Value> input_grads_;
};

}  // namespace ridge

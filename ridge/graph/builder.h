// GraphBuilder: builds a Graph fluently; keeps the first error with its place.
//
//   GraphBuilder b("mlp");
//   Value x = b.Input("x", {DType::kF32, {128, 784}}, {"batch", ""});
//   Value h = Relu(b.Linear(x, 512, "fc1"));
//   b.Output("logits", b.Linear(h, 10, "fc2"));
//   Result<Graph> graph = b.Build();
//
// After an error every further call does nothing and returns an invalid Value; Build() returns the
// error.  Not thread-safe.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/value.h"

namespace ridge {

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) { graph_.name = std::move(name); }
  explicit GraphBuilder(Graph graph) : graph_(std::move(graph)) {}
  GraphBuilder(const GraphBuilder&) = delete;  // values point to their builder
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  Value Input(const std::string& name, TensorType type, std::vector<std::string> dim_names = {});
  Value Parameter(const std::string& name, TensorType type, Init init);
  Value State(const std::string& name, TensorType type, Init init, ValueRole role);
  Value Constant(Tensor tensor, const std::string& name = "const");
  Value Scalar(DType dtype, double value);      // rank 0
  Value At(ValueId id) { return {*this, id}; }  // a value of the graph; invalid for kNoValue
  // What every function of value.h comes to.
  std::vector<Value> AddOp(const char* op, const std::vector<Value>& inputs, AttrMap attrs,
                           const std::string& name);
  void Output(const std::string& name, Value value);
  void Update(Value variable, Value value);

  // Later calls evaluate nodes with constant inputs immediately and add their results as constants.
  // `work` bounds elements and bytes of results plus flops, over all such nodes; a node that
  // exceeds the rest of it is added as usual.
  void FoldConstants(int64_t work) { fold_work_ = work; }

  // x [.., in] -> [.., out] with parameters NAME.weight [out, in] and NAME.bias [out], both
  // uniform in +-1/sqrt(in) as PyTorch's nn.Linear.
  Value Linear(Value x, int64_t out, const std::string& name, bool bias = true);

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

}  // namespace ridge

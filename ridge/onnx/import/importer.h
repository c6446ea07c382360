// OnnxImporter: the walk over a graph's nodes, with the names that are visible.  Inner header of
// import.cc, node.cc and the control-flow converters.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/builder.h"
#include "ridge/onnx/file/initializers.h"
#include "ridge/onnx/import/import.h"
#include "ridge/onnx/training/training_info.h"

namespace ridge {

// "Conv 'layer1/conv'", by the node's name or its first output's.
std::string OnnxWhere(const onnx::NodeProto& node);

// What a name stands for: a value of the graph, or an initializer that nobody has read yet.
struct OnnxBinding {
  Value value;
  const Tensor* initializer = nullptr;
};

class OnnxImporter {
 public:
  OnnxImporter(const OnnxModel& model, const OnnxImportOptions& options);
  Result<OnnxImport> Run();
  // training_info.cc; `dims` are those of the algorithm's inputs too.
  Result<Graph> RunTraining(const OnnxStepInputs& names,
                            const std::map<std::string, int64_t>& dims);

  // What stopped a walk that ended with `status`: a file that can't be read comes first, whatever
  // a converter made of the number that it missed.
  Status Cause(const Status& status) const;

  GraphBuilder& b() { return builder_; }
  const OnnxImportOptions& options() const { return options_; }
  const OnnxModel& model() const { return model_; }

  // nullptr when the name is not visible here.
  OnnxBinding* Find(const std::string& name);
  Value ValueOf(const std::string& name);
  Value StatisticOf(const std::string& name);
  // In memory; nullptr for what is not known, and after an error.
  const Tensor* ConstantOf(const std::string& name);
  // nullptr for an initializer that is trained.
  const Tensor* FixedOf(const std::string& name);
  void Bind(const std::string& name, Value value);
  // A Constant node's result: an initializer when the file keeps its weights so.
  void BindConstant(const std::string& name, Tensor tensor);
  // A list of tensors (converters/sequence.cc).  The value stands for it wherever values are passed
  // on: in loops, branches and functions.  It never takes part in a computation.
  Result<Value> AddSequence(std::vector<Value> elements);
  const std::vector<Value>* SequenceOf(Value value) const;  // nullptr for a tensor
  Value Rng();

  // The nodes of a subgraph with its inputs bound to `inputs`; gives the values of its outputs.
  // Names of the graphs around it are visible inside, its own are not visible outside.
  Result<std::vector<Value>> Inline(const onnx::GraphProto& body, const std::vector<Value>& inputs);
  // Charges nodes that unrolled loops are about to emit; fails when a file exceeds the budget.
  Status ChargeUnrollBudget(int64_t nodes);

 private:
  // Names of one graph or function; a function does not see those of its caller.
  struct Scope {
    std::unordered_map<std::string, OnnxBinding> names;  // look-up only, never iterated
    bool opaque = false;                                 // a function: sees nothing around it
    bool top = false;                                    // results take the file's names
    std::map<std::string, int64_t> opsets;               // a function's own; empty: the model's
    std::map<std::string, const onnx::AttributeProto*> attributes;  // a function's, for references
  };

  Status BindInputs();
  Status BindInitializers(const onnx::GraphProto& graph);
  Status CheckOperators(const onnx::GraphProto& graph) const;
  Status Walk(const onnx::GraphProto& graph);
  Status ConvertNode(const onnx::NodeProto& proto);
  Status CheckGrowth();
  // Charges nodes of a subgraph or function that was visited before.
  Status ChargeRepeat(int64_t nodes) { return repeats_ > 0 ? ChargeUnrollBudget(nodes) : Status(); }
  Status CallFunction(const onnx::FunctionProto& function, const onnx::NodeProto& call);
  const onnx::FunctionProto* FindFunction(const onnx::NodeProto& node) const;
  int64_t Opset(const std::string& domain) const;
  Status AddOutputs();
  // Of a training step (training_info.cc).
  Status BindAlgorithm(const onnx::TrainingInfoProto& info, const OnnxStepInputs& names);
  Status BindNumber(const OnnxValueInfo& input, const std::string& name);
  Status BindStepInput(const OnnxValueInfo& input);
  Status Initialize(const onnx::TrainingInfoProto& info);
  Status BindUpdated(const onnx::TrainingInfoProto& info);
  Status AddUpdates(const onnx::TrainingInfoProto& info);
  Status AddAlgorithmOutputs(const onnx::GraphProto& algorithm);
  Value AsLoss(Value value);
  Result<OnnxImport> Finish();
  Value UseInitializer(const std::string& name, const Tensor& tensor);
  // The initializer with its numbers; nullptr after an error.
  const Tensor* InMemory(const Tensor& initializer);
  std::string Claim(const std::string& name);
  const onnx::NodeProto& Resolve(const onnx::NodeProto& proto, onnx::NodeProto& storage) const;

  const OnnxModel& model_;
  const OnnxImportOptions& options_;
  InitializerRoles roles_;
  GraphBuilder builder_;
  std::vector<Scope> scopes_;
  std::map<std::string, const onnx::FunctionProto*> functions_;
  std::set<ValueId> named_;                   // values that carry a name of the file
  std::map<std::string, Tensor> algorithm_;   // initializers of a training step
  std::map<std::string, int64_t> step_dims_;  // of the inputs of a training step
  std::map<ValueId, std::vector<Value>> sequences_;
  std::map<std::string, Tensor> constants_;           // Constant nodes taken for initializers
  std::unordered_map<const Tensor*, Tensor> loaded_;  // initializers from the file; look-up only
  int64_t loaded_bytes_ = 0;
  Status file_status_;                        // of loading them
  std::map<std::string, std::string> unset_;  // outputs that no converter gave: where
  std::vector<std::string> fixed_, notes_;
  Value rng_;
  std::map<std::string, int64_t> opsets_;  // of the model
  int64_t charged_nodes_ = 0;
  int64_t file_nodes_ = 0;         // converted so far, without what is in subgraphs and functions
  std::set<const void*> visited_;  // subgraphs and functions
  int repeats_ = 0;                // number of enclosing ones that were visited before
  size_t counted_values_ = 0;
  int64_t constant_bytes_left_;  // for what nodes make out of little
  int depth_ = 0;
};

}  // namespace ridge

// OnnxNode: what a converter sees of one ONNX node, and where it puts the results.
//
//   Result<Value> ConvertCelu(OnnxNode& n) {
//     const double alpha = n.number("alpha", 1);
//     return Elu(n[0] / alpha) * alpha;
//   }
//
// A converter returns what output 0 is; one of several outputs sets each.  Nodes whose inputs are
// all constants are evaluated at once (GraphBuilder::FoldConstants), so chains of Shape, Gather and
// Concat need no care.
//
// Files come from anywhere: a converter must not assume that there are as many inputs as the
// operator should have, nor a rank, nor that an attribute has its kind.  Reading is safe: an absent
// input gives an invalid Value, and reading an attribute of another kind fails the conversion with
// a message and gives the fallback.  The builder keeps the first error, and after one every new
// value is invalid and has type f32[]: look at ok() before indexing dims of something just made.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/graph/builder.h"

namespace onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace ridge {

class OnnxImporter;

class OnnxNode {
 public:
  OnnxNode(OnnxImporter& importer, const onnx::NodeProto& proto, int64_t opset);

  GraphBuilder& b();
  const std::string& op_type() const;
  int64_t opset() const { return opset_; }  // version of the node's domain
  bool ok() const;
  Status status() const;  // the builder's

  // Trailing absent inputs are not counted.
  size_t input_count() const;
  bool has_input(size_t i) const;
  // Invalid when absent; fails for a sequence.  For float initializers see initializers.h.
  Value operator[](size_t i);
  std::vector<Value> inputs();
  // Fails unless there are inputs 0 to `count` - 1.  What a converter always needs is said by its
  // row in the table.
  Status Need(size_t count);
  // REQUIRES: has_input(i).
  TensorType type(size_t i);
  const Dims dims(size_t i) { return type(i).dims; }

  // A running statistic: an initializer becomes a state that training updates.
  Value Statistic(size_t i);

  // A tensor or a sequence, for nodes that pass both on: Identity, If, Loop.
  Value TensorOrSequence(size_t i);
  bool IsSequence(size_t i);
  Result<std::vector<Value>> Sequence(size_t i);  // fails for a tensor

  // The contents of input i when they are known before planning (constants, initializers, what was
  // folded, inputs given at import); nullptr when they are not, or when it is absent.
  const Tensor* ConstantInput(size_t i);
  // The same, but nullptr for an initializer that is trained.
  const Tensor* FixedInput(size_t i);
  // The same as numbers, flattened; fails with kUnsupported when they are not known: "Reshape '..':
  // shape (input 1, 'axes') depends on data; it must be known before planning".
  Result<std::vector<int64_t>> ConstantInts(size_t i, const char* what);
  Result<std::vector<double>> ConstantNumbers(size_t i, const char* what);
  Result<int64_t> ConstantInt(size_t i, const char* what);    // exactly one
  Result<double> ConstantNumber(size_t i, const char* what);  // exactly one

  bool has_attr(const std::string& name) const;
  int64_t integer(const std::string& name, int64_t fallback);
  double number(const std::string& name, double fallback);
  std::string text(const std::string& name, const std::string& fallback);
  std::vector<int64_t> integers(const std::string& name, std::vector<int64_t> fallback = {});
  std::vector<double> numbers(const std::string& name, std::vector<double> fallback = {});
  std::vector<std::string> texts(const std::string& name);
  Result<Tensor> tensor(const std::string& name);
  const onnx::GraphProto* subgraph(const std::string& name) const;  // nullptr when there is none

  // Axes given as an attribute before some opset and as input `i` since: attribute, then input,
  // then `fallback`.  Negative ones are counted from the end of `rank`; out of range fails.
  Result<std::vector<int64_t>> Axes(const char* attr, size_t i, int rank,
                                    std::vector<int64_t> fallback = {});
  Result<int64_t> Axis(int64_t axis, int rank);  // in [0, rank)

  // Outputs that the file names; those it leaves out need not be computed.
  size_t output_count() const;
  bool wants(size_t i) const;
  // The result; takes the name that the file gives it.  An invalid value is refused at the end
  // unless an error was reported.
  void Set(size_t i, Value v);

  // Whether the graph is imported for training: Dropout drops, batch norm uses the batch.
  bool training() const;
  bool batch_norm_frozen() const;  // training with frozen statistics
  // The graph's input i64[3] = {seed, step, first sample}; made when first asked for.
  Value Rng();
  // A number that differs from node to node and not from run to run, for `stream` attributes.
  int64_t Stream() const;

  // "Conv 'layer1/conv': text".
  Status Error(const std::string& text) const;        // kInvalidModel
  Status Unsupported(const std::string& text) const;  // kUnsupported
  std::string where() const;
  void Fail(Status status);  // the builder keeps the first

  OnnxImporter& importer() { return importer_; }
  const onnx::NodeProto& proto() const { return proto_; }

 private:
  const onnx::AttributeProto* Find(const std::string& name, int type);

  OnnxImporter& importer_;
  const onnx::NodeProto& proto_;
  int64_t opset_;
};

}  // namespace ridge

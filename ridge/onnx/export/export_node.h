// OnnxNodeWriter: what an exporter sees of one node of a graph, and where it writes.
//
//   Status WriteLeakyRelu(OnnxNodeWriter& n) {
//     n.Emit("LeakyRelu", {n.in(0)}, {{"alpha", n.attrs().at("alpha")}});
//     return Status();
//   }
//
// Values are names.  Emit() makes the node's own outputs; Temp() makes a value between nodes.
// Attributes are written as ONNX has them: number, integer, text, lists, tensor.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ridge/onnx/export/export_dims.h"

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace ridge {

// Where the nodes of one graph go.
class OnnxGraphWriter {
 public:
  OnnxGraphWriter(const Graph& graph, const ExportDims& extents, int64_t opset,
                  onnx::GraphProto& proto, std::map<std::string, Tensor>& contents);

  const Graph& graph() const { return graph_; }
  const ExportDims& extents() const { return extents_; }
  int64_t opset() const { return opset_; }
  onnx::GraphProto& proto() { return proto_; }
  // The opset that the nodes written so far need, and what needs it.  Above opset(): what was
  // written is not the graph.
  int64_t needed_opset() const { return needed_opset_; }
  const std::string& needed_for() const { return needed_for_; }
  void NeedOpset(int64_t opset, const std::string& what);

  // Whether a node or an output reads the value.
  bool IsRead(ValueId value) const { return read_[static_cast<size_t>(value)]; }
  const std::string& NameOf(ValueId value) const { return names_[static_cast<size_t>(value)]; }
  void SetName(ValueId value, std::string name) {
    names_[static_cast<size_t>(value)] = std::move(name);
  }
  std::string FreeName(const std::string& wanted);  // and takes it
  bool Take(const std::string& name) { return taken_.insert(name).second; }

  void AddNode(const std::string& name, const std::string& op_type,
               const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
               const AttrMap& attrs);
  void AddInitializer(const std::string& name, const Tensor& tensor);
  // A constant that nodes share: equal ones are written once.
  std::string Constant(const Tensor& tensor, const std::string& hint);
  // i64[1]: the extent as it is at run time.  REQUIRES: it is fixed or has a formula.
  std::string ExtentOf(const ExportDim& extent);

 private:
  std::string SymbolValue(int symbol);

  const Graph& graph_;
  const ExportDims& extents_;
  int64_t opset_;
  int64_t needed_opset_ = 0;
  std::string needed_for_;
  onnx::GraphProto& proto_;
  std::map<std::string, Tensor>& contents_;
  std::vector<std::string> names_;
  std::vector<bool> read_;
  std::set<std::string> taken_;
  std::vector<std::pair<Tensor, std::string>> constants_;  // small ones
  std::map<ExportDim, std::string> extent_names_;
  std::map<int, std::string> symbol_values_;
};

// The first opset that has the operator for elements of this type, in the form that is written
// here; 0 where that is not known.
int64_t OnnxSince(const std::string& op_type, DType dtype);

class OnnxNodeWriter {
 public:
  OnnxNodeWriter(OnnxGraphWriter& writer, const Node& node);

  const Node& node() const { return node_; }
  const AttrMap& attrs() const { return node_.attrs; }
  int64_t integer(const std::string& name) const { return attrs().integer(name); }
  double number(const std::string& name) const { return attrs().number(name); }
  const std::string& text(const std::string& name) const { return attrs().text(name); }
  const std::vector<int64_t>& integers(const std::string& name) const {
    return attrs().integers(name);
  }
  int64_t opset() const { return writer_.opset(); }
  // False when the node cannot be said in this opset.  The exporter writes nothing then and returns
  // ok; the graph is written again in a later opset, or refused with `what`.
  bool HasOpset(int64_t opset, const std::string& what);

  bool has_input(size_t i) const;
  size_t input_count() const { return node_.inputs.size(); }
  std::string in(size_t i) const;  // "" when absent
  std::vector<std::string> ins() const;
  std::string out(size_t i = 0) const;
  const TensorType& type(size_t i) const;  // REQUIRES: has_input(i)
  const TensorType& out_type(size_t i = 0) const;
  // Attribute `name` as an axis of an array of this rank: not negative, as opsets below 11 want it.
  int64_t axis(const std::string& name, int rank) const;
  // The node that makes input i; nullptr for none.
  const Node* Producer(size_t i) const;
  // What another node's exporter sees of it: names and types of its inputs.
  OnnxNodeWriter Of(const Node& node) const { return {writer_, node}; }
  // Whether anything reads output i.
  bool used(size_t i) const;

  // The node whose results are this node's outputs [0, outputs).
  void Emit(const std::string& op_type, const std::vector<std::string>& inputs,
            const AttrMap& attrs = {}, size_t outputs = 1);
  void EmitTo(const std::string& output, const std::string& op_type,
              const std::vector<std::string>& inputs, const AttrMap& attrs = {});
  std::string Temp(const std::string& op_type, const std::vector<std::string>& inputs,
                   const AttrMap& attrs = {});
  // Equal ones are written once where they are small.
  std::string Constant(const Tensor& tensor, const std::string& hint) {
    return writer_.Constant(tensor, hint);
  }
  std::string Scalar(DType dtype, double value);         // rank 0
  std::string Ints(const std::vector<int64_t>& values);  // i64[n]
  std::string Cast(const std::string& value, DType from, DType to);

  // ONNX's products, sums and norms have one dtype for all operands and the result; ours may differ
  // (`out_dtype`, a wide bias).  Then the node is computed in the widest, and rounded once:
  //   const DType dtype = n.ComputeInWidest();
  //   n.EmitRounded("MatMul", {n.As(0, dtype), n.As(1, dtype)}, {}, dtype);
  // f32 for f16 beside bf16.  Nodes written from here on need the opset of that dtype.
  DType ComputeInWidest();
  std::string As(size_t i, DType dtype);  // input i cast; "" when absent
  void EmitRounded(const std::string& op_type, const std::vector<std::string>& inputs,
                   const AttrMap& attrs, DType dtype);
  // "ReduceMax" and the like along `axes`, which are kept with extent 1.
  std::string Reduce(const std::string& op_type, const std::string& x,
                     const std::vector<int64_t>& axes);
  std::string Reshape(const std::string& x, const std::vector<int64_t>& dims);
  // x with these extents; one that is open is left for the runtime to find.  Fails as Extents().
  Result<std::string> ReshapeTo(const std::string& x, const std::vector<ExportDim>& extents);
  // A list of extents as i64[n], computed where it follows from the inputs' shapes.  Fails with
  // kUnsupported when one of them cannot be told.
  Result<std::string> Extents(const std::vector<ExportDim>& extents);
  const ExportDims& extents() const { return writer_.extents(); }

  Status Unsupported(const std::string& text) const;

 private:
  void NeedOp(const std::string& op_type);

  OnnxGraphWriter& writer_;
  const Node& node_;
  int emitted_ = 0;
  std::optional<DType> computed_;  // ComputeInWidest()
};

}  // namespace ridge

#include "ridge/onnx/export/export_node.h"

#include <fmt/format.h>

#include "onnx/onnx-ml.pb.h"
#include "ridge/onnx/file/tensor.h"

namespace ridge {
namespace {

// Constants up to this size are compared with each other, to be written once.
constexpr int64_t kSharedBytes = 4096;

void SetAttribute(const Attr& value, onnx::AttributeProto& proto) {
  using Type = onnx::AttributeProto;
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    proto.set_type(Type::INT);
    proto.set_i(*integer);
  } else if (const auto* number = std::get_if<double>(&value)) {
    proto.set_type(Type::FLOAT);
    proto.set_f(static_cast<float>(*number));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    proto.set_type(Type::STRING);
    proto.set_s(*text);
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
    proto.set_type(Type::INTS);
    proto.mutable_ints()->Add(integers->begin(), integers->end());
  } else if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    proto.set_type(Type::FLOATS);
    for (const double x : *numbers) proto.add_floats(static_cast<float>(x));
  } else if (const auto* tensor = std::get_if<Tensor>(&value)) {
    proto.set_type(Type::TENSOR);
    StoreTensor(*tensor, "", *proto.mutable_t());
  }
}

// The one attribute of ONNX that we write and that is a list of texts, of one.
void MakeList(onnx::AttributeProto& attribute) {
  attribute.add_strings(attribute.s());
  attribute.clear_s();
  attribute.set_type(onnx::AttributeProto::STRINGS);
}

// What is written beside the operators that records name.
constexpr OnnxOp kHelpers[] = {
    {"Gemm", 9, 13, 9},
    {"Identity", 1, 13, 1, 1},
    {"Range", 11, 11, 11},
    {"Shape", 1, 13, 1, 1},
};

const std::map<std::string_view, OnnxOp>& WrittenOps() {
  static const auto ops = [] {
    std::map<std::string_view, OnnxOp> map;
    for (const OnnxOp& op : kHelpers) map.emplace(op.name, op);
    for (const OpDef& op : AllOps()) {
      if (op.onnx.name != nullptr) map.emplace(op.onnx.name, op.onnx);
    }
    return map;
  }();
  return ops;
}

Tensor Number(int64_t value) { return Tensor::FromInts({1}, std::vector<int64_t>{value}); }

}  // namespace

OnnxGraphWriter::OnnxGraphWriter(const Graph& graph, const ExportDims& extents, int64_t opset,
                                 onnx::GraphProto& proto, std::map<std::string, Tensor>& contents)
    : graph_(graph),
      extents_(extents),
      opset_(opset),
      proto_(proto),
      contents_(contents),
      names_(graph.values().size()),
      read_(graph.values().size(), false) {
  for (const Node& node : graph.nodes()) {
    for (ValueId id : node.inputs) {
      if (id != kNoValue) read_[static_cast<size_t>(id)] = true;
    }
  }
  for (const GraphOutput& output : graph.outputs()) read_[static_cast<size_t>(output.value)] = true;
}

std::string OnnxGraphWriter::FreeName(const std::string& wanted) {
  std::string name = wanted;
  for (int n = 2; !Take(name); ++n) name = fmt::format("{}_{}", wanted, n);
  return name;
}

void OnnxGraphWriter::NeedOpset(int64_t opset, const std::string& what) {
  if (opset <= needed_opset_) return;
  needed_opset_ = opset;
  needed_for_ = what;
}

void OnnxGraphWriter::AddNode(const std::string& name, const std::string& op_type,
                              const std::vector<std::string>& inputs,
                              const std::vector<std::string>& outputs, const AttrMap& attrs) {
  onnx::NodeProto& node = *proto_.add_node();
  node.set_name(name);
  node.set_op_type(op_type);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  for (const auto& [key, value] : attrs) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(key);
    SetAttribute(value, attribute);
    if (key == "activations") MakeList(attribute);
  }
}

void OnnxGraphWriter::AddInitializer(const std::string& name, const Tensor& tensor) {
  onnx::TensorProto& proto = *proto_.add_initializer();
  proto.set_name(name);
  proto.set_data_type(OnnxFromDType(tensor.type().dtype));
  for (const int64_t extent : tensor.type().dims) proto.add_dims(extent);
  contents_[name] = tensor;
}

std::string OnnxGraphWriter::Constant(const Tensor& tensor, const std::string& hint) {
  const bool shared = tensor.bytes() <= kSharedBytes;
  if (shared) {
    for (const auto& [other, name] : constants_) {
      if (other.same_bits(tensor)) return name;
    }
  }
  const std::string name = FreeName(hint);
  AddInitializer(name, tensor);
  if (shared) constants_.emplace_back(tensor, name);
  return name;
}

std::string OnnxGraphWriter::SymbolValue(int symbol) {
  std::string& name = symbol_values_[symbol];
  if (!name.empty()) return name;
  const OnnxSymbol& s = extents_.symbols()[static_cast<size_t>(symbol)];
  const std::string shape = FreeName(s.input + "_shape");
  AddNode(shape, "Shape", {s.input}, {shape}, {});
  name = FreeName(s.name + "_extent");
  AddNode(name, "Gather", {shape, Constant(Number(s.axis), "axis")}, {name}, {});
  NeedOpset(OnnxSince("Gather", DType::kI64), s.name);
  return name;
}

std::string OnnxGraphWriter::ExtentOf(const ExportDim& extent) {
  if (extent.fixed()) return Constant(Number(extent.here), "extent");
  std::string& name = extent_names_[extent];
  if (!name.empty()) return name;
  const auto formula = extents_.FormulaOf(extent);
  RIDGE_CHECK(formula.has_value(), "an extent without a formula");
  name = SymbolValue(formula->first);
  const auto apply = [&](const char* op, const std::string& with) {
    const std::string result = FreeName(fmt::format("extent_{}", op));
    AddNode(result, op, {name, with}, {result}, {});
    name = result;
  };
  if (formula->second >= 0) apply("Mul", SymbolValue(formula->second));
  if (formula->factor != 1) apply("Mul", Constant(Number(formula->factor), "extent"));
  if (formula->offset != 0) apply("Add", Constant(Number(formula->offset), "extent"));
  return name;
}

int64_t OnnxSince(const std::string& op_type, DType dtype) {
  const auto found = WrittenOps().find(op_type);
  RIDGE_CHECK(found != WrittenOps().end(), "no operator's record names ONNX's " + op_type);
  const OnnxOp& since = found->second;
  if (dtype == DType::kBF16) return since.bf16;
  if (dtype == DType::kI32 || dtype == DType::kI64) return since.integers;
  const bool common = dtype == DType::kF16 || dtype == DType::kF32 || dtype == DType::kF64;
  return common ? since.floats : since.others;
}

OnnxNodeWriter::OnnxNodeWriter(OnnxGraphWriter& writer, const Node& node)
    : writer_(writer), node_(node) {}

bool OnnxNodeWriter::has_input(size_t i) const {
  return i < node_.inputs.size() && node_.inputs[i] != kNoValue;
}

std::string OnnxNodeWriter::in(size_t i) const {
  return has_input(i) ? writer_.NameOf(node_.inputs[i]) : "";
}

std::vector<std::string> OnnxNodeWriter::ins() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < node_.inputs.size(); ++i) names.push_back(in(i));
  while (!names.empty() && names.back().empty()) names.pop_back();
  return names;
}

std::string OnnxNodeWriter::out(size_t i) const { return writer_.NameOf(node_.outputs.at(i)); }

const TensorType& OnnxNodeWriter::type(size_t i) const {
  return writer_.graph().type(node_.inputs.at(i));
}

const TensorType& OnnxNodeWriter::out_type(size_t i) const {
  return writer_.graph().type(node_.outputs.at(i));
}

int64_t OnnxNodeWriter::axis(const std::string& name, int rank) const {
  const int64_t axis = integer(name);
  return axis < 0 ? axis + rank : axis;
}

const Node* OnnxNodeWriter::Producer(size_t i) const {
  return has_input(i) ? writer_.graph().producer(node_.inputs[i]) : nullptr;
}

bool OnnxNodeWriter::used(size_t i) const { return writer_.IsRead(node_.outputs.at(i)); }

void OnnxNodeWriter::Emit(const std::string& op_type, const std::vector<std::string>& inputs,
                          const AttrMap& attrs, size_t outputs) {
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs; ++i) names.push_back(out(i));
  writer_.AddNode(out(0), op_type, inputs, names, attrs);
  NeedOp(op_type);
}

void OnnxNodeWriter::EmitTo(const std::string& output, const std::string& op_type,
                            const std::vector<std::string>& inputs, const AttrMap& attrs) {
  writer_.AddNode(output, op_type, inputs, {output}, attrs);
  NeedOp(op_type);
}

std::string OnnxNodeWriter::Temp(const std::string& op_type, const std::vector<std::string>& inputs,
                                 const AttrMap& attrs) {
  const std::string name = writer_.FreeName(fmt::format("{}/{}_{}", out(0), op_type, emitted_++));
  EmitTo(name, op_type, inputs, attrs);
  return name;
}

std::string OnnxNodeWriter::Scalar(DType dtype, double value) {
  return writer_.Constant(Tensor::Scalar(dtype, value), "scalar");
}

std::string OnnxNodeWriter::Ints(const std::vector<int64_t>& values) {
  return writer_.Constant(Tensor::FromInts({static_cast<int64_t>(values.size())}, values), "ints");
}

std::string OnnxNodeWriter::Cast(const std::string& value, DType from, DType to) {
  if (from == to) return value;
  return Temp("Cast", {value}, {{"to", OnnxFromDType(to)}});
}

DType OnnxNodeWriter::ComputeInWidest() {
  DType widest = out_type().dtype;
  for (size_t i = 0; i < input_count(); ++i) {
    const DType dtype = has_input(i) ? type(i).dtype : widest;
    if (dtype == widest) continue;
    const bool f64 = dtype == DType::kF64 || widest == DType::kF64;
    widest = f64 ? DType::kF64 : DType::kF32;
  }
  computed_ = widest;
  return widest;
}

std::string OnnxNodeWriter::As(size_t i, DType dtype) {
  return has_input(i) ? Cast(in(i), type(i).dtype, dtype) : "";
}

void OnnxNodeWriter::EmitRounded(const std::string& op_type, const std::vector<std::string>& inputs,
                                 const AttrMap& attrs, DType dtype) {
  if (out_type().dtype == dtype) return Emit(op_type, inputs, attrs);
  const std::string wide = Temp(op_type, inputs, attrs);
  Emit("Cast", {wide}, {{"to", OnnxFromDType(out_type().dtype)}});
}

// By the node's first input; bf16 anywhere counts.
void OnnxNodeWriter::NeedOp(const std::string& op_type) {
  if (computed_ && op_type != "Cast")
    return writer_.NeedOpset(OnnxSince(op_type, *computed_), writer_.graph().Where(node_));
  DType dtype = has_input(0) ? type(0).dtype : out_type().dtype;
  for (size_t i = 0; i < input_count(); ++i) {
    if (has_input(i) && type(i).dtype == DType::kBF16) dtype = DType::kBF16;
  }
  if (out_type().dtype == DType::kBF16) dtype = DType::kBF16;
  writer_.NeedOpset(OnnxSince(op_type, dtype), writer_.graph().Where(node_));
}

bool OnnxNodeWriter::HasOpset(int64_t opset, const std::string& what) {
  writer_.NeedOpset(opset, writer_.graph().Where(node_) + (what.empty() ? "" : ": " + what));
  return opset <= writer_.opset();
}

// Axes are an input since opset 13 (ReduceSum) or 18 (the others), an attribute before.
std::string OnnxNodeWriter::Reduce(const std::string& op_type, const std::string& x,
                                   const std::vector<int64_t>& axes) {
  const AttrMap keep = {{"keepdims", 1}};
  if (opset() >= (op_type == "ReduceSum" ? 13 : 18)) return Temp(op_type, {x, Ints(axes)}, keep);
  return Temp(op_type, {x}, {{"keepdims", 1}, {"axes", axes}});
}

std::string OnnxNodeWriter::Reshape(const std::string& x, const std::vector<int64_t>& dims) {
  return Temp("Reshape", {x, Ints(dims)});
}

Result<std::string> OnnxNodeWriter::ReshapeTo(const std::string& x,
                                              const std::vector<ExportDim>& extents) {
  std::vector<int64_t> dims;
  int64_t open = 0, empty = 0;
  for (const ExportDim& extent : extents) {
    dims.push_back(extent.fixed() ? extent.here : -1);
    open += extent.fixed() ? 0 : 1;
    empty += extent.here == 0 ? 1 : 0;
  }
  if (open <= 1 && empty == 0) return Reshape(x, dims);
  RIDGE_ASSIGN_OR_RETURN(const std::string shape, Extents(extents));
  return Temp("Reshape", {x, shape});
}

Result<std::string> OnnxNodeWriter::Extents(const std::vector<ExportDim>& extents) {
  std::vector<int64_t> fixed;
  for (const ExportDim& extent : extents) {
    if (extent.fixed()) fixed.push_back(extent.here);
    if (!extent.fixed() && !writer_.extents().FormulaOf(extent)) {
      return Unsupported(
          fmt::format("{} here and {} elsewhere: the extent follows from no named "
                      "dimension",
                      extent.here, extent.other));
    }
  }
  if (fixed.size() == extents.size()) return Ints(fixed);
  std::vector<std::string> parts;
  for (const ExportDim& extent : extents) parts.push_back(writer_.ExtentOf(extent));
  if (parts.size() == 1) return parts[0];
  return Temp("Concat", parts, {{"axis", 0}});
}

Status OnnxNodeWriter::Unsupported(const std::string& text) const {
  return Status(ErrorCode::kUnsupported, writer_.graph().Where(node_) + ": " + text);
}

}  // namespace ridge

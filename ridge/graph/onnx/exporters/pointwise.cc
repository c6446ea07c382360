// ONNX exporters: one element from one element.
//
// Most pointwise operators have no entry here: their OpDef names the ONNX operator.
#include "ridge/graph/onnx/exporter.h"
#include "ridge/graph/onnx/tensor.h"

namespace ridge {
namespace {

// 0.5 * x * (1 + inner)
void EmitGelu(OnnxNodeWriter& n, const std::string& inner) {
  const DType dtype = n.type(0).dtype;
  const std::string half = n.Temp("Mul", {n.in(0), n.Scalar(dtype, 0.5)});
  n.Emit("Mul", {half, n.Temp("Add", {inner, n.Scalar(dtype, 1)})});
}

// Before opset 20: erf(x / sqrt 2), or tanh(sqrt(2 / pi) * (x + 0.044715 x^3)).
Status WriteGelu(OnnxNodeWriter& n) {
  if (n.opset() >= 20) {
    n.Emit("Gelu", {n.in(0)}, {{"approximate", n.text("approximate")}});
    return Status();
  }
  const DType dtype = n.type(0).dtype;
  if (n.text("approximate") == "none") {
    const std::string scaled = n.Temp("Mul", {n.in(0), n.Scalar(dtype, 0.7071067811865476)});
    EmitGelu(n, n.Temp("Erf", {scaled}));
    return Status();
  }
  const std::string square = n.Temp("Mul", {n.in(0), n.in(0)});
  const std::string cubic = n.Temp("Mul", {square, n.Scalar(dtype, 0.044715)});
  const std::string factor = n.Temp("Add", {cubic, n.Scalar(dtype, 1)});
  const std::string scaled = n.Temp("Mul", {n.in(0), n.Scalar(dtype, 0.7978845608028654)});
  EmitGelu(n, n.Temp("Tanh", {n.Temp("Mul", {scaled, factor})}));
  return Status();
}

Status WriteSilu(OnnxNodeWriter& n) {
  n.Emit("Mul", {n.in(0), n.Temp("Sigmoid", {n.in(0)})});
  return Status();
}

Status WriteRsqrt(OnnxNodeWriter& n) {
  n.Emit("Reciprocal", {n.Temp("Sqrt", {n.in(0)})});
  return Status();
}

Status WriteSquare(OnnxNodeWriter& n) {
  n.Emit("Mul", {n.in(0), n.in(0)});
  return Status();
}

Status WriteNotEqual(OnnxNodeWriter& n) {
  n.Emit("Not", {n.Temp("Equal", n.ins())});
  return Status();
}

Status WriteLeakyRelu(OnnxNodeWriter& n) {
  n.Emit("LeakyRelu", {n.in(0)}, {{"alpha", n.number("alpha")}});
  return Status();
}

Status WriteElu(OnnxNodeWriter& n) {
  n.Emit("Elu", {n.in(0)}, {{"alpha", n.number("alpha")}});
  return Status();
}

Status WriteCast(OnnxNodeWriter& n) {
  n.Emit("Cast", {n.in(0)}, {{"to", int64_t{OnnxFromDType(n.out_type().dtype)}}});
  return Status();
}

Status WriteClip(OnnxNodeWriter& n) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double min = n.number("min"), max = n.number("max");
  const DType dtype = n.type(0).dtype;
  std::vector<std::string> inputs = {n.in(0), min > -infinity ? n.Scalar(dtype, min) : ""};
  if (max < infinity) inputs.push_back(n.Scalar(dtype, max));
  n.Emit("Clip", inputs);
  return Status();
}

constexpr OnnxExporter kTable[] = {
    {"cast", 13, nullptr, WriteCast},
    {"clip", 13, nullptr, WriteClip},
    {"elu", 6, nullptr, WriteElu},
    {"gelu", 20, nullptr, WriteGelu, 13},
    {"leaky_relu", 6, nullptr, WriteLeakyRelu},
    {"not_equal", 13, nullptr, WriteNotEqual},
    {"rsqrt", 13, nullptr, WriteRsqrt},
    {"silu", 13, nullptr, WriteSilu},
    {"square", 13, nullptr, WriteSquare},
    // Their records name a later version than is needed: it only added bf16, or changed attributes
    // that we do not write.
    {"add", 7, "Add"},
    {"div", 7, "Div"},
    {"greater_equal", 12, "GreaterOrEqual"},
    {"less_equal", 12, "LessOrEqual"},
    {"mul", 7, "Mul"},
    {"pow", 12, "Pow"},
    {"relu", 6, "Relu"},
    {"sub", 7, "Sub"},
    {"where", 9, "Where"},
};

}  // namespace

std::span<const OnnxExporter> OnnxPointwiseExporters() { return kTable; }

}  // namespace ridge

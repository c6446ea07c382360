// ONNX exporters: one element from one element.
//
// Most pointwise operators have no entry here: their OpDef names the ONNX operator.
#include <cmath>
#include <limits>

#include "ridge/core/small_float.h"
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

Status WriteHardSigmoid(OnnxNodeWriter& n) {
  const AttrMap attrs = {{"alpha", n.number("alpha")}, {"beta", n.number("beta")}};
  n.Emit("HardSigmoid", {n.in(0)}, attrs);
  return Status();
}

// Before opset 18: x tanh(softplus(x)).
Status WriteMish(OnnxNodeWriter& n) {
  if (n.opset() >= 18) {
    n.Emit("Mish", {n.in(0)});
  } else {
    n.Emit("Mul", {n.in(0), n.Temp("Tanh", {n.Temp("Softplus", {n.in(0)})})});
  }
  return Status();
}

// sign(x) floor(|x|)
Status WriteTrunc(OnnxNodeWriter& n) {
  const std::string whole = n.Temp("Floor", {n.Temp("Abs", {n.in(0)})});
  n.Emit("Mul", {n.Temp("Sign", {n.in(0)}), whole});
  return Status();
}

Status WriteFmod(OnnxNodeWriter& n) {
  n.Emit("Mod", n.ins(), {{"fmod", int64_t{1}}});
  return Status();
}

// Mod with Python's sign is for integers alone; of floats it is fmod(fmod(a, b) + b, b).
Status WriteMod(OnnxNodeWriter& n) {
  if (!IsFloat(n.type(0).dtype)) {
    n.Emit("Mod", n.ins());
    return Status();
  }
  const AttrMap fmod = {{"fmod", int64_t{1}}};
  const std::string rest = n.Temp("Mod", n.ins(), fmod);
  n.Emit("Mod", {n.Temp("Add", {rest, n.in(1)}), n.in(1)}, fmod);
  return Status();
}

Status WriteShiftLeft(OnnxNodeWriter& n) {
  n.Emit("BitShift", n.ins(), {{"direction", std::string("LEFT")}});
  return Status();
}

Status WriteShiftRight(OnnxNodeWriter& n) {
  if (IsSigned(n.type(0).dtype)) return n.Unsupported("BitShift takes integers without sign");
  n.Emit("BitShift", n.ins(), {{"direction", std::string("RIGHT")}});
  return Status();
}

// ONNX drops the high bits of integers where our cast saturates: they are limited before.
std::string LimitedFor(OnnxNodeWriter& n, DType from, DType to) {
  const bool narrows = IsInteger(from) && IsInteger(to) && IntegerBits(to) < IntegerBits(from);
  if (!narrows || n.integer("saturate") == 0) return n.in(0);
  const double end = std::ldexp(1.0, IntegerBits(to) - (IsSigned(to) ? 1 : 0));
  const std::string low = n.Scalar(from, IsSigned(from) && IsSigned(to) ? -end : 0);
  return n.Temp("Clip", {n.in(0), low, n.Scalar(from, end - 1)});
}

Status WriteCast(OnnxNodeWriter& n) {
  const DType from = n.type(0).dtype, to = n.out_type().dtype;
  AttrMap attrs = {{"to", int64_t{OnnxFromDType(to)}}};
  if (IsSmallFloat(to)) attrs["saturate"] = n.integer("saturate");
  if (to == DType::kF8E8M0) attrs["round_mode"] = n.text("round");
  n.Emit("Cast", {LimitedFor(n, from, to)}, attrs);
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
    {"fmod", 13, nullptr, WriteFmod},
    {"gelu", 20, nullptr, WriteGelu, 13},
    {"hard_sigmoid", 6, nullptr, WriteHardSigmoid},
    {"leaky_relu", 6, nullptr, WriteLeakyRelu},
    {"mish", 18, nullptr, WriteMish, 13},
    {"mod", 13, nullptr, WriteMod},
    {"not_equal", 13, nullptr, WriteNotEqual},
    {"rsqrt", 13, nullptr, WriteRsqrt},
    {"shift_left", 11, nullptr, WriteShiftLeft},
    {"shift_right", 11, nullptr, WriteShiftRight},
    {"silu", 13, nullptr, WriteSilu},
    {"square", 13, nullptr, WriteSquare},
    {"trunc", 13, nullptr, WriteTrunc},
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

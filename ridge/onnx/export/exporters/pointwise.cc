// ONNX exporters: one element from one element.
//
// Most pointwise operators have no entry here: their records name the ONNX operator (OpDef::onnx).
#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/core/small_float.h"
#include "ridge/onnx/export/exporter.h"
#include "ridge/onnx/file/tensor.h"

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

// Before opset 14: x times x / 6 + 1 / 2 limited to [0, 1].
Status WriteHardSwish(OnnxNodeWriter& n) {
  if (n.opset() >= 14) {
    n.Emit("HardSwish", {n.in(0)});
  } else {
    const AttrMap attrs = {{"alpha", 1.0 / 6}, {"beta", 0.5}};
    n.Emit("Mul", {n.in(0), n.Temp("HardSigmoid", {n.in(0)}, attrs)});
  }
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
  n.Emit("Mod", n.ins(), {{"fmod", 1}});
  return Status();
}

// Mod with Python's sign is for integers alone; of floats it is fmod(fmod(a, b) + b, b).
Status WriteMod(OnnxNodeWriter& n) {
  if (!IsFloat(n.type(0).dtype)) {
    n.Emit("Mod", n.ins());
    return Status();
  }
  const AttrMap fmod = {{"fmod", 1}};
  const std::string rest = n.Temp("Mod", n.ins(), fmod);
  n.Emit("Mod", {n.Temp("Add", {rest, n.in(1)}), n.in(1)}, fmod);
  return Status();
}

Status WriteShiftLeft(OnnxNodeWriter& n) {
  n.Emit("BitShift", n.ins(), {{"direction", "LEFT"}});
  return Status();
}

Status WriteShiftRight(OnnxNodeWriter& n) {
  if (IsSigned(n.type(0).dtype)) return n.Unsupported("BitShift takes integers without sign");
  n.Emit("BitShift", n.ins(), {{"direction", "RIGHT"}});
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

// The first opset whose Cast knows the type.
int64_t CastOpset(DType dtype) {
  if (dtype == DType::kF8E8M0) return 24;
  if (dtype == DType::kF4E2M1) return 23;
  if (IsSmallFloat(dtype)) return 19;
  if (IsInteger(dtype) && IntegerBits(dtype) < 8) return 21;
  return dtype == DType::kBF16 ? 13 : 9;
}

Status WriteCast(OnnxNodeWriter& n) {
  const DType from = n.type(0).dtype, to = n.out_type().dtype;
  AttrMap attrs = {{"to", OnnxFromDType(to)}};
  const int64_t opset = std::max(CastOpset(from), CastOpset(to));
  if (!n.HasOpset(opset, "its types")) return Status();
  if (IsSmallFloat(to)) attrs["saturate"] = n.integer("saturate");
  if (to == DType::kF8E8M0) attrs["round_mode"] = n.text("round");
  n.Emit("Cast", {LimitedFor(n, from, to)}, attrs);
  return Status();
}

Status WriteBitCast(OnnxNodeWriter& n) {
  n.Emit("BitCast", {n.in(0)}, {{"to", OnnxFromDType(n.out_type().dtype)}});
  return Status();
}

// Limits are attributes before opset 11, and f32.
Status WriteClip(OnnxNodeWriter& n) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double min = n.number("min"), max = n.number("max");
  const DType dtype = n.type(0).dtype;
  if (n.opset() < 11) {
    if (dtype == DType::kF64 && !n.HasOpset(11, "limits in f64")) return Status();
    AttrMap attrs;
    if (min > -infinity) attrs["min"] = min;
    if (max < infinity) attrs["max"] = max;
    n.Emit("Clip", {n.in(0)}, attrs);
    return Status();
  }
  std::vector<std::string> inputs = {n.in(0), min > -infinity ? n.Scalar(dtype, min) : ""};
  if (max < infinity) inputs.push_back(n.Scalar(dtype, max));
  n.Emit("Clip", inputs);
  return Status();
}

constexpr OnnxExporter kTable[] = {
    {"bit_cast", WriteBitCast},
    {"cast", WriteCast},
    {"clip", WriteClip},
    {"fmod", WriteFmod},
    {"gelu", WriteGelu},
    {"hard_swish", WriteHardSwish},
    {"mish", WriteMish},
    {"mod", WriteMod},
    {"not_equal", WriteNotEqual},
    {"rsqrt", WriteRsqrt},
    {"shift_left", WriteShiftLeft},
    {"shift_right", WriteShiftRight},
    {"silu", WriteSilu},
    {"square", WriteSquare},
    {"trunc", WriteTrunc},
};

}  // namespace

std::span<const OnnxExporter> OnnxPointwiseExporters() { return kTable; }

}  // namespace ridge

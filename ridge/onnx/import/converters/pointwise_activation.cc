// ONNX converters: activations that are a few nodes of ours, which fuse into one loop, and Relu of
// integers.  ONNX's defaults are floats, so they are written as such.
#include "ridge/onnx/import/converter.h"

namespace ridge {
namespace {

double Number(OnnxNode& n, const char* name, float fallback) {
  return n.number(name, static_cast<double>(fallback));
}

// a (e^(x / a) - 1) below 0: an elu of x / a.
Result<Value> ConvertCelu(OnnxNode& n) {
  const double alpha = Number(n, "alpha", 1.0F);
  return alpha == 1 ? Elu(n[0]) : Elu(n[0] * (1 / alpha)) * alpha;
}

// No operator of ONNX: tf2onnx leaves it in files of TensorFlow's exact GELU.
Result<Value> ConvertErfc(OnnxNode& n) { return 1 - Op("erf", {n[0]}); }

Result<Value> ConvertPRelu(OnnxNode& n) {
  const Value x = n[0];
  Value slope = n[1];
  const size_t rank = n.dims(0).size();
  if (n.ok() && n.opset() < 7 && n.dims(1).size() == 1 && rank > 2) {  // one slope a channel
    Dims dims(rank - 1, 1);
    dims[0] = n.dims(1)[0];
    slope = Reshape(slope, dims);
  }
  const Value bent = x * slope;
  return Where(x > 0, x, bent);
}

Result<Value> ConvertRelu(OnnxNode& n) {
  const Value x = n[0];
  const bool is_float = IsFloat(n.type(0).dtype);
  return is_float ? Relu(x) : Op("clip", {x}, {{"min", 0.0}});
}

Result<Value> ConvertSelu(OnnxNode& n) {
  const double alpha = Number(n, "alpha", 1.67326319217681884765625F);
  const double gamma = Number(n, "gamma", 1.05070102214813232421875F);
  return Op("elu", {n[0]}, {{"alpha", alpha}}) * gamma;
}

// x + bias below -lambd, x - bias above lambd, 0 between; integers by way of f64.
Result<Value> ConvertShrink(OnnxNode& n) {
  const DType dtype = n.type(0).dtype, wide = IsFloat(dtype) ? dtype : DType::kF64;
  const Value x = Cast(n[0], wide);
  const double lambd = Number(n, "lambd", 0.5F), bias = Number(n, "bias", 0);
  const Value low = x < -lambd;
  const Value zero = ScalarLike(x, 0), below = x + -bias;
  const Value upper = Where(x > lambd, below, zero);
  return Cast(Where(low, x + bias, upper), dtype);
}

// x sigmoid(alpha x)
Result<Value> ConvertSwish(OnnxNode& n) {
  const Value x = n[0];
  const double alpha = Number(n, "alpha", 1.0F);
  return alpha == 1 ? Silu(x) : x * Sigmoid(x * alpha);
}

Result<Value> ConvertThresholdedRelu(OnnxNode& n) {
  const Value x = n[0];
  const Value above = x > Number(n, "alpha", 1.0F);
  return Where(above, x, 0);
}

constexpr OnnxConverter kTable[] = {
    {"", "Celu", ConvertCelu, 1},   {"", "Erfc", ConvertErfc, 1},
    {"", "PRelu", ConvertPRelu, 2}, {"", "Relu", ConvertRelu, 1},
    {"", "Selu", ConvertSelu, 1},   {"", "Shrink", ConvertShrink, 1},
    {"", "Swish", ConvertSwish, 1}, {"", "ThresholdedRelu", ConvertThresholdedRelu, 1},
};

}  // namespace

std::span<const OnnxConverter> OnnxPointwiseActivationConverters() { return kTable; }

}  // namespace ridge

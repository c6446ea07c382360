// ONNX converters: activations that are a few nodes of ours, which fuse into one loop, and Relu of
// integers.  ONNX's defaults are floats, so they are written as such.
#include "ridge/onnx/import/converter.h"

namespace ridge {
namespace {

double Number(OnnxNode& n, const char* name, float fallback) {
  return n.number(name, static_cast<double>(fallback));
}

Value Above(GraphBuilder& b, Value x, double limit) {
  return b.Op("greater", {x, b.Scalar(b.type(x).dtype, limit)});
}

// a (e^(x / a) - 1) below 0: an elu of x / a.
Status ConvertCelu(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  GraphBuilder& b = n.b();
  const double alpha = Number(n, "alpha", 1.0F);
  if (alpha == 1) {
    n.Set(0, b.Op("elu", {n.input(0)}));
  } else {
    const Value bent = b.Op("elu", {b.MulScalar(n.input(0), 1 / alpha)});
    n.Set(0, b.MulScalar(bent, alpha));
  }
  return n.status();
}

Status ConvertPRelu(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  GraphBuilder& b = n.b();
  const Value x = n.input(0);
  Value slope = n.input(1);
  const size_t rank = n.dims(0).size();
  if (n.ok() && n.opset() < 7 && n.dims(1).size() == 1 && rank > 2) {  // one slope a channel
    Dims dims(rank - 1, 1);
    dims[0] = n.dims(1)[0];
    slope = b.Reshape(slope, dims);
  }
  n.Set(0, b.Where(Above(b, x, 0), x, b.Mul(x, slope)));
  return n.status();
}

Status ConvertRelu(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  const Value x = n.input(0);
  const bool is_float = IsFloat(n.type(0).dtype);
  n.Set(0, is_float ? n.b().Relu(x) : n.b().Op("clip", {x}, {{"min", 0.0}}));
  return n.status();
}

Status ConvertSelu(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  GraphBuilder& b = n.b();
  const double alpha = Number(n, "alpha", 1.67326319217681884765625F);
  const double gamma = Number(n, "gamma", 1.05070102214813232421875F);
  n.Set(0, b.MulScalar(b.Op("elu", {n.input(0)}, {{"alpha", alpha}}), gamma));
  return n.status();
}

// x + bias below -lambd, x - bias above lambd, 0 between; integers by way of f64.
Status ConvertShrink(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  GraphBuilder& b = n.b();
  const DType dtype = n.type(0).dtype, wide = IsFloat(dtype) ? dtype : DType::kF64;
  const Value x = b.Cast(n.input(0), wide);
  const double lambd = Number(n, "lambd", 0.5F), bias = Number(n, "bias", 0);
  const Value low = b.Op("less", {x, b.Scalar(wide, -lambd)});
  const Value upper = b.Where(Above(b, x, lambd), b.AddScalar(x, -bias), b.Scalar(wide, 0));
  n.Set(0, b.Cast(b.Where(low, b.AddScalar(x, bias), upper), dtype));
  return n.status();
}

// x sigmoid(alpha x)
Status ConvertSwish(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  GraphBuilder& b = n.b();
  const Value x = n.input(0);
  const double alpha = Number(n, "alpha", 1.0F);
  n.Set(0, alpha == 1 ? b.Op("silu", {x}) : b.Mul(x, b.Op("sigmoid", {b.MulScalar(x, alpha)})));
  return n.status();
}

Status ConvertThresholdedRelu(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  GraphBuilder& b = n.b();
  const Value x = n.input(0);
  const Value above = Above(b, x, Number(n, "alpha", 1.0F));
  n.Set(0, b.Where(above, x, b.Scalar(b.type(x).dtype, 0)));
  return n.status();
}

constexpr OnnxConverter kTable[] = {
    {"", "Celu", ConvertCelu},
    {"", "PRelu", ConvertPRelu},
    {"", "Relu", ConvertRelu},
    {"", "Selu", ConvertSelu},
    {"", "Shrink", ConvertShrink},
    {"", "Swish", ConvertSwish},
    {"", "ThresholdedRelu", ConvertThresholdedRelu},
};

}  // namespace

std::span<const OnnxConverter> OnnxPointwiseActivationConverters() { return kTable; }

}  // namespace ridge

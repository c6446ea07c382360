// The converters of quantized arithmetic.  Inner header of quantize*.cc.
//
// Integers are computed as f32 where that is exact: |a - zero point| <= 255, so 256 products and
// their sum stay below 2^24.  Longer sums are made of such parts, added as i32.
#pragma once
#include "ridge/onnx/import/converter.h"

namespace ridge {

inline constexpr int64_t kMostExactTerms = 256;
inline constexpr int64_t kMostExactParts = 1024;  // beyond, one product in f64

// How a scale or zero point of one operand is laid out for broadcasting over x [dims].
using OnnxSpread = Value (*)(Value v, const Dims& dims);

// One number, as rank 0; the others are given back as they are.
Value OnnxScalarOrSame(Value v);

// Input i broadcast by `spread` keeps x's dims; anything larger is refused.
Result<Value> OnnxSpreadInput(OnnxNode& n, size_t i, const Dims& dims, OnnxSpread spread);

// Input i is known and all 0, or absent: subtracting it changes nothing.
bool OnnxIsZero(OnnxNode& n, size_t i);

// Input x minus zero point (may be absent), as f32.
Result<Value> OnnxCentered(OnnxNode& n, size_t x, size_t zero_point, OnnxSpread spread);

// round(product * scale + zero point), saturated; `y_scale` is the input by which the scale is
// divided, the zero point comes after it and gives the type, which is `fallback` without one.
Result<Value> OnnxRequantized(OnnxNode& n, Value product, Value scale, size_t y_scale,
                              DType fallback);

// quantize_product.cc
Result<Value> ConvertConvInteger(OnnxNode& n);
Result<Value> ConvertMatMulInteger(OnnxNode& n);
Result<Value> ConvertQLinearConv(OnnxNode& n);
Result<Value> ConvertQLinearMatMul(OnnxNode& n);

}  // namespace ridge

// The converters of pointwise operators.  Inner header of pointwise*.cc and quantize.cc.
#pragma once
#include "ridge/onnx/import/converter.h"

namespace ridge {

// Input i with the broadcasting of one number, as rank 0; fails unless it has one element.
Result<Value> OnnxOneNumber(OnnxNode& n, size_t i, const char* what);

// Types that are only stored, as f32; others as they are.
Value OnnxComputable(GraphBuilder& b, Value x);

// x as ONNX's Cast stores it: integers keep their low bits, `saturate` and `round_mode` are those
// of the node.
Value OnnxCast(OnnxNode& n, Value x, DType to);

// pointwise_activation.cc
Status ConvertCelu(OnnxNode& n);
Status ConvertElu(OnnxNode& n);
Status ConvertGelu(OnnxNode& n);
Status ConvertHardSigmoid(OnnxNode& n);
Status ConvertLeakyRelu(OnnxNode& n);
Status ConvertPRelu(OnnxNode& n);
Status ConvertRelu(OnnxNode& n);
Status ConvertSelu(OnnxNode& n);
Status ConvertShrink(OnnxNode& n);
Status ConvertSoftsign(OnnxNode& n);
Status ConvertSwish(OnnxNode& n);
Status ConvertThresholdedRelu(OnnxNode& n);

// pointwise_arithmetic.cc
Status ConvertBitShift(OnnxNode& n);
Status ConvertBitwiseNot(OnnxNode& n);
Status ConvertClip(OnnxNode& n);
Status ConvertMax(OnnxNode& n);
Status ConvertMean(OnnxNode& n);
Status ConvertMin(OnnxNode& n);
Status ConvertMod(OnnxNode& n);
Status ConvertPow(OnnxNode& n);
Status ConvertSum(OnnxNode& n);

// pointwise_cast.cc
Status ConvertBitCast(OnnxNode& n);
Status ConvertCast(OnnxNode& n);
Status ConvertCastLike(OnnxNode& n);

}  // namespace ridge

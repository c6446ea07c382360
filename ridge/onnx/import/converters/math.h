// The converters of reductions and products.  Inner header of math*.cc.
#pragma once
#include "ridge/onnx/import/converters/shape.h"

namespace ridge {

// By a reduction of ours (IsReduction) that gives what ONNX's operator does (math_reduce.cc).
Result<Value> ConvertReduction(OnnxNode& n, const OpDef& op);

// math_einsum.cc
Result<Value> ConvertEinsum(OnnxNode& n);

}  // namespace ridge

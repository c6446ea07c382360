// The converters of reductions and products.  Inner header of math*.cc.
#pragma once
#include "ridge/onnx/import/converters/shape.h"

namespace ridge {

// math_reduce.cc
Status ConvertReduceSum(OnnxNode& n);
Status ConvertReduceMean(OnnxNode& n);
Status ConvertReduceProd(OnnxNode& n);
Status ConvertReduceMax(OnnxNode& n);
Status ConvertReduceMin(OnnxNode& n);
Status ConvertReduceL1(OnnxNode& n);
Status ConvertReduceL2(OnnxNode& n);
Status ConvertReduceLogSum(OnnxNode& n);
Status ConvertReduceLogSumExp(OnnxNode& n);
Status ConvertReduceSumSquare(OnnxNode& n);

// math_einsum.cc
Status ConvertEinsum(OnnxNode& n);

}  // namespace ridge

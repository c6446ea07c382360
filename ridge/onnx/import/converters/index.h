// The converters of look-ups.  Inner header of index*.cc.
#pragma once
#include "ridge/onnx/import/converters/shape.h"

namespace ridge {

// index_scatter.cc
Result<Value> ConvertScatterElements(OnnxNode& n);
Result<Value> ConvertScatterNd(OnnxNode& n);
Result<Value> ConvertTensorScatter(OnnxNode& n);

// index_choose.cc
Result<Value> ConvertArgMax(OnnxNode& n);
Result<Value> ConvertArgMin(OnnxNode& n);
Result<Value> ConvertHardmax(OnnxNode& n);
Status ConvertTopK(OnnxNode& n);

// index_known.cc: their results have shapes that depend on data, so data must be known.
Result<Value> ConvertNonZero(OnnxNode& n);
Status ConvertUnique(OnnxNode& n);
Result<Value> ConvertCompress(OnnxNode& n);
Result<Value> ConvertNonMaxSuppression(OnnxNode& n);

// x under the dims [count]; x as [rows, ..] with its first `axes` extents as one.
Value OnnxFlat(Value x);

// Input i's contents, at most 2^24 elements; fails with kUnsupported when they depend on data.
Result<Tensor> OnnxConstantTensor(OnnxNode& n, size_t i, const char* what);

}  // namespace ridge

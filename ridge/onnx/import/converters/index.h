// The converters of look-ups.  Inner header of index*.cc.
#pragma once
#include "ridge/onnx/import/converters/shape.h"

namespace ridge {

// index_scatter.cc
Status ConvertScatterElements(OnnxNode& n);
Status ConvertScatterNd(OnnxNode& n);
Status ConvertTensorScatter(OnnxNode& n);

// index_choose.cc
Status ConvertArgMax(OnnxNode& n);
Status ConvertArgMin(OnnxNode& n);
Status ConvertHardmax(OnnxNode& n);
Status ConvertTopK(OnnxNode& n);

// index_known.cc: their results have shapes that depend on data, so data must be known.
Status ConvertNonZero(OnnxNode& n);
Status ConvertUnique(OnnxNode& n);
Status ConvertCompress(OnnxNode& n);
Status ConvertNonMaxSuppression(OnnxNode& n);

// x under the dims [count]; x as [rows, ..] with its first `axes` extents as one.
Value OnnxFlat(GraphBuilder& b, Value x);

// Input i's contents, at most 2^24 elements; fails with kUnsupported when they depend on data.
Result<Tensor> OnnxKnownTensor(OnnxNode& n, size_t i, const char* what);

}  // namespace ridge

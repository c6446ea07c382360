// What the converters of moving, indexing and reducing share.  Inner header of shape*.cc, index*.cc
// and math*.cc.
#pragma once
#include <cstdint>
#include <vector>

#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/import/node.h"

namespace ridge {

// 0, 1, .. count - 1 as i64[count]; a file can't make us hold more than 2^24 of them.
Result<Value> OnnxIota(OnnxNode& n, int64_t count);

// `value` everywhere.
Value OnnxFilled(GraphBuilder& b, const TensorType& type, double value);

// Product of dims [begin, end).
int64_t OnnxElementCount(const Dims& dims, size_t begin, size_t end);

// Refuses a repeated axis.
Status CheckOnnxAxesOnce(const OnnxNode& n, const std::vector<int64_t>& axes);

// ONNX dtype number of an attribute as our dtype; `fallback` when it is absent.
Result<DType> OnnxDTypeAttr(OnnxNode& n, const char* name, DType fallback);

// A pad of x by before[d] and after[d]; negative amounts remove elements.
Status OnnxCheckPads(const OnnxNode& n, const Dims& dims, const std::vector<int64_t>& before,
                     const std::vector<int64_t>& after);

// shape_parts.cc
Result<Value> ConvertConcat(OnnxNode& n);
Status ConvertSplit(OnnxNode& n);
Result<Value> ConvertSlice(OnnxNode& n);
Result<Value> ConvertTile(OnnxNode& n);
Result<Value> ConvertDepthToSpace(OnnxNode& n);
Result<Value> ConvertSpaceToDepth(OnnxNode& n);
Status ConvertReverseSequence(OnnxNode& n);

// shape_pad.cc
Result<Value> ConvertPad(OnnxNode& n);
Result<Value> ConvertCenterCropPad(OnnxNode& n);

// shape_fill.cc
Status ConvertConstant(OnnxNode& n);
Result<Value> ConvertConstantOfShape(OnnxNode& n);
Result<Value> ConvertRange(OnnxNode& n);
Result<Value> ConvertEyeLike(OnnxNode& n);
Result<Value> ConvertTrilu(OnnxNode& n);
Result<Value> ConvertOneHot(OnnxNode& n);

}  // namespace ridge

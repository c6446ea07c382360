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

// x[.., start:end:step, ..] along one axis.
Value OnnxSliceAxis(GraphBuilder& b, Value x, int64_t axis, int64_t start, int64_t end,
                    int64_t step = 1);

// Product of dims [begin, end).
int64_t OnnxExtent(const Dims& dims, size_t begin, size_t end);

// Refuses a repeated axis.
Status CheckOnnxAxesOnce(const OnnxNode& n, const std::vector<int64_t>& axes);

// ONNX dtype number of an attribute as our dtype; `fallback` when it is absent.
Result<DType> OnnxDTypeAttr(OnnxNode& n, const char* name, DType fallback);

// A pad of x by before[d] and after[d]; negative amounts remove elements.
Status OnnxCheckPads(const OnnxNode& n, const Dims& dims, const std::vector<int64_t>& before,
                     const std::vector<int64_t>& after);

// shape_parts.cc
Status ConvertConcat(OnnxNode& n);
Status ConvertSplit(OnnxNode& n);
Status ConvertSlice(OnnxNode& n);
Status ConvertTile(OnnxNode& n);
Status ConvertDepthToSpace(OnnxNode& n);
Status ConvertSpaceToDepth(OnnxNode& n);
Status ConvertReverseSequence(OnnxNode& n);

// shape_pad.cc
Status ConvertPad(OnnxNode& n);
Status ConvertCenterCropPad(OnnxNode& n);

// shape_fill.cc
Status ConvertConstant(OnnxNode& n);
Status ConvertConstantOfShape(OnnxNode& n);
Status ConvertRange(OnnxNode& n);
Status ConvertEyeLike(OnnxNode& n);
Status ConvertTrilu(OnnxNode& n);
Status ConvertOneHot(OnnxNode& n);

}  // namespace ridge

// What the files of the norm family share.  Inner header of norm*.cc.
#pragma once
#include "ridge/onnx/import/node.h"

namespace ridge {

// norm_batch.cc
Status ConvertBatchNormalization(OnnxNode& n);

// norm_window.cc
Result<Value> ConvertLrn(OnnxNode& n);
Result<Value> ConvertLpNormalization(OnnxNode& n);
Result<Value> ConvertMeanVarianceNormalization(OnnxNode& n);

// norm_softmax.cc
Result<Value> ConvertSoftmax(OnnxNode& n);
Result<Value> ConvertLogSoftmax(OnnxNode& n);

// The float input 0 with at least `rank` dimensions, or an error.
Status NeedFloat(OnnxNode& n, int rank);

// v [C] as [1,C,1,...], to broadcast over values of `rank` dimensions.  Fails the conversion when
// v has not C elements.
Value OverChannelsOf(OnnxNode& n, Value v, int64_t channels, int rank);

// The attribute `epsilon`; fails the conversion unless it is finite and at least 0.
double Epsilon(OnnxNode& n);

}  // namespace ridge

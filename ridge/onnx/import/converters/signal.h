// What the files of the signal family share.  Inner header of signal*.cc.
#pragma once
#include "ridge/onnx/import/node.h"

namespace ridge {

Result<Value> ConvertDft(OnnxNode& n);              // signal_fourier.cc
Result<Value> ConvertStft(OnnxNode& n);             // signal_fourier.cc
Result<Value> ConvertMelWeightMatrix(OnnxNode& n);  // signal_mel.cc

// The attribute `output_datatype`, FLOAT by default.
Result<DType> SignalDType(OnnxNode& n);

}  // namespace ridge

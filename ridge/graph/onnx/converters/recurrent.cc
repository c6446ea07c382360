// ONNX converters: RNN, GRU, LSTM.
#include "ridge/graph/onnx/converter.h"

namespace ridge {

std::span<const OnnxConverter> OnnxRecurrentConverters() { return {}; }

}  // namespace ridge

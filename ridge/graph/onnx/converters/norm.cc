// ONNX converters: normalizations and softmax.
#include "ridge/graph/onnx/converter.h"

namespace ridge {

std::span<const OnnxConverter> OnnxNormConverters() { return {}; }

}  // namespace ridge

// ONNX converters: losses.
#include "ridge/graph/onnx/converter.h"

namespace ridge {

std::span<const OnnxConverter> OnnxLossConverters() { return {}; }

}  // namespace ridge

// ONNX converters: convolutions and pools.
#include "ridge/graph/onnx/converter.h"

namespace ridge {

std::span<const OnnxConverter> OnnxConvConverters() { return {}; }

}  // namespace ridge

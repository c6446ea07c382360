// ONNX converters: gather, scatter, top-k and other look-ups.
#include "ridge/graph/onnx/converter.h"

namespace ridge {

std::span<const OnnxConverter> OnnxIndexConverters() { return {}; }

}  // namespace ridge

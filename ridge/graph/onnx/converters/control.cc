// ONNX converters: If, Loop, Scan.
#include "ridge/graph/onnx/converter.h"

namespace ridge {

std::span<const OnnxConverter> OnnxControlConverters() { return {}; }

}  // namespace ridge

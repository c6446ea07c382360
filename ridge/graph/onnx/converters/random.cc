// ONNX converters: dropout and random numbers.
#include "ridge/graph/onnx/converter.h"

namespace ridge {

std::span<const OnnxConverter> OnnxRandomConverters() { return {}; }

}  // namespace ridge

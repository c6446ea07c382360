// ONNX converters: resize, sampling, regions of interest.
#include "ridge/graph/onnx/converter.h"

namespace ridge {

std::span<const OnnxConverter> OnnxImageConverters() { return {}; }

}  // namespace ridge

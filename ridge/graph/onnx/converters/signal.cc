// ONNX converters: Fourier transforms, windows, mel weights.
#include "ridge/graph/onnx/converter.h"

namespace ridge {

std::span<const OnnxConverter> OnnxSignalConverters() { return {}; }

}  // namespace ridge

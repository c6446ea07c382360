// ONNX converters: one element from one element: arithmetic, comparison, logic, bits, casts, activations.
#include "ridge/graph/onnx/converter.h"

namespace ridge {

std::span<const OnnxConverter> OnnxPointwiseConverters() { return {}; }

}  // namespace ridge

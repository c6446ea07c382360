// ONNX converters: reductions, scans, matrix products, einsum.
#include "ridge/graph/onnx/converter.h"

namespace ridge {

std::span<const OnnxConverter> OnnxMathConverters() { return {}; }

}  // namespace ridge

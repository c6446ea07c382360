// The weight gradient of a depthwise convolution, f32, for channels in blocks of 8 or 16: one block
// of channels of one image.
#pragma once
#include <cstdint>

#include "ridge/graph/ops/shared/window.h"

namespace ridge::cpu {

// Rows of x with zeros around them, so that no tap along a row is outside.
struct DepthwiseShape {
  WindowAxis y, x;
  int64_t block = 16;        // channels side by side
  int64_t row_elements = 0;  // of x with its zeros
  int64_t taps() const { return y.kernel * x.kernel; }
};

// Adds to dw [taps][block] the sum over all outputs of dy times what the tap sees, and to dbias
// [block] the sum of dy when it is not nullptr.
//   x: (y.input, row_elements); dy: (y.output, x.output, block)
void AddDepthwiseGradWeight(const DepthwiseShape& shape, const float* x, const float* dy, float* dw,
                            float* dbias);

}  // namespace ridge::cpu

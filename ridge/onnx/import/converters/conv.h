// What the converters of convolutions and pools share: the sliding window of ONNX's attributes.
#pragma once
#include <span>
#include <vector>

#include "ridge/onnx/import/converter.h"

namespace ridge {

// One entry for each spatial dimension; every number is in the range that the operators take, so
// sums of a few products of them with an extent cannot overflow.
struct OnnxWindow {
  std::vector<int64_t> kernel, stride, dilation, pad_begin, pad_end;

  size_t rank() const { return kernel.size(); }
  int64_t span(size_t d) const { return (kernel[d] - 1) * dilation[d] + 1; }
  // `stride`, `padding` and `dilation` of our operators; lists that say nothing are left out.
  AttrMap attrs() const;
};

// From `strides`, `dilations`, `pads` and `auto_pad`, over an input of dims `x` = [batch, channels,
// 1 to 3 spatial extents].  An empty `kernel` is read from `kernel_shape`.
Result<OnnxWindow> ReadWindow(OnnxNode& n, const Dims& x, std::vector<int64_t> kernel);

// The attribute or `fallback` for each of `count` dimensions; fails on another number of entries or
// one outside [min, max].
Result<std::vector<int64_t>> ReadList(OnnxNode& n, const char* name, size_t count, int64_t fallback,
                                      int64_t min, int64_t max);

// x has 1 to 3 spatial dimensions, none over 2^40.
Status CheckSpatial(OnnxNode& n, const Dims& x);

// y + bias[channel], where bias is [channels] or absent.
Result<Value> AddChannelBias(OnnxNode& n, Value y, Value bias);

Result<Value> ConvertConvTranspose(OnnxNode& n);  // conv_transpose.cc
Result<Value> ConvertCol2Im(OnnxNode& n);         // conv_transpose.cc
Result<Value> ConvertDeformConv(OnnxNode& n);     // conv_deform.cc

}  // namespace ridge

// Conversion: one sample of a field rewritten as one sample of a model's input.
//
// Element types are cast; u8 with more than one element (an image) becomes float divided by 255, or
// (x / 255 - mean) / std, each step rounded to f32 as torchvision's ToTensor and Normalize do.
// Floats of 16 bits are rounded from f32: the bits of a cast of the f32 input. The channels of a
// picture or a clip, last in the field, move to the front or behind the frames where the shapes ask
// for it: [H,W,C] becomes [C,H,W], [N,H,W,C] becomes [C,N,H,W] or [N,C,H,W]. Otherwise the order of
// elements stays, and only extents of 1 and flattening (one side has one dimension or none) may
// differ: two different shapes of equal size, such as [2,6] and [3,4], are a mistake more often
// than a wish.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/shape.h"
#include "ridge/core/status.h"
#include "ridge/data/preprocessing.h"

namespace ridge {

struct Conversion {
  DType from = DType::kF32;
  DType to = DType::kF32;
  int64_t elements = 0;
  int64_t channels = 0;  // > 0: each block is [pixels,channels] and becomes [channels,pixels]
  int64_t blocks = 1;    // of equal size: pictures, or the frames of a clip
  bool divide_by_255 = false;
  // Of a normalization: what each byte becomes, [pixel_channels, 256]; element i is of channel
  // i % pixel_channels.
  std::vector<float> table;
  std::vector<uint16_t> reduced_table;  // the same in the type of 16 bits that `to` is; else empty
  int64_t pixel_channels = 1;

  bool is_copy() const { return from == to && channels == 0; }
};

// The message of a failure is the bare reason: "784 elements, 3072 are needed".
Result<Conversion> PlanConversion(const TensorType& from, const TensorType& to,
                                  const PixelNormalization& normalization = {});

// `from` may have any alignment; `to` that of its type.  The two don't overlap.
void Convert(const Conversion& conversion, const void* from, void* to);

}  // namespace ridge

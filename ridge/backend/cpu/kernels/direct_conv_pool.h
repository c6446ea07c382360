// A convolution of few input channels with its 2x2 max pool, and the gradient of its weights,
// vectorized over the windows of the pool.
//
// The windows of some rows of one image are a tile.  For each input channel and each (dy, dx) in
// the patch of KH+1 by KW+1 inputs that a window sees, the tile holds that input of every window,
// one after the other: a row of the tile.  Tap (ky, kx) of the convolution at place (py, px) of the
// window is then row (ky + py, kx + px), whatever the extents, and y and dy are read and written
// row-major.
#pragma once
#include <cstdint>

#include "ridge/core/rounding.h"

namespace ridge::cpu {

struct ConvPoolShape {
  int64_t channels = 0, height = 0, width = 0;          // of one image
  int64_t outputs = 0, kernel_y = 0, kernel_x = 0;      // of w
  int64_t pad_top = 0, pad_left = 0, padded_width = 0;  // zeros around the image
  int64_t pooled_y = 0, pooled_x = 0;                   // windows
  int64_t tile_rows = 0;                                // rows of windows in a tile
  bool relu = false;

  // Kernels of three columns are computed by minimal filtering, F(2,3): the two places of a row of
  // the window share products, four for six (Winograd, Arithmetic Complexity of Computations).
  bool filters() const { return kernel_x == 3; }
  // Numbers that a packed output channel has for its taps.
  int64_t packed_taps() const { return filters() ? channels * kernel_y * 4 : taps(); }
  int64_t taps() const { return channels * kernel_y * kernel_x; }
  int64_t windows() const { return pooled_y * pooled_x; }
  int64_t image() const { return channels * height * width; }
  // Rows of the image that a tile of so many rows of windows sees.
  int64_t tile_inputs(int64_t rows) const { return 2 * rows + kernel_y - 1; }
  // Patch inputs of one row of the patch, an even number: they are made in pairs.
  int64_t patch_width() const { return (kernel_x + 2) / 2 * 2; }
  int64_t patch_rows() const { return channels * (kernel_y + 1) * patch_width(); }
  // Windows of a whole tile, rounded up to whole vectors and one more that a store may run into.
  int64_t tile_stride() const { return RoundUpFloats(tile_rows * pooled_x) + 16; }
};

inline constexpr int64_t kConvPoolGroup = 4;  // output channels are padded to a multiple

// Rows of windows [first, first + rows) of one image, laid out as above.
struct ConvPoolTile {
  float* data;    // [patch_rows, tile_stride]
  float* inputs;  // scratch: InputFloats()
  int64_t first = 0, rows = 0;
};
int64_t ConvPoolTileFloats(const ConvPoolShape& shape);
int64_t ConvPoolInputFloats(const ConvPoolShape& shape);
// With `filter`, as ConvPoolForward wants it of a shape that filters(): x0 - x2, x1 + x2, x2 - x1,
// x1 - x3 instead of the four inputs x0 to x3 of each row of the patch.
void FillConvPoolTile(const ConvPoolShape& shape, const float* image, const ConvPoolTile& tile,
                      bool filter);

// w and bias (nullptr: none) of all outputs for ConvPoolForward: PackedFloats().
int64_t ConvPoolPackedFloats(const ConvPoolShape& shape);
void PackConvPoolWeights(const ConvPoolShape& shape, const float* w, const float* bias,
                         float* packed);

// y and place [outputs, windows] of one image; outputs [begin, end) are written, begin is a
// multiple of kConvPoolGroup.
struct ConvPoolResults {
  float* y;
  uint8_t* place;
  int64_t begin, end;
};
void ConvPoolForward(const ConvPoolShape& shape, const ConvPoolTile& tile, const float* packed,
                     const ConvPoolResults& to);

// Adds the tile's part to the sums of each output: [outputs, taps + 1, 16], the last one the bias;
// lanes are summed at the end.
inline int64_t ConvPoolSumFloats(const ConvPoolShape& shape) {
  return shape.outputs * (shape.taps() + 1) * 16;
}
void ConvPoolGradient(const ConvPoolShape& shape, const ConvPoolTile& tile, const uint8_t* place,
                      const float* dy, float* sums);

}  // namespace ridge::cpu

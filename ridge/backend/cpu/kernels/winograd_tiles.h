// Tiles of the Winograd convolution F(4x4, 3x3): transforms and matrix products.
//
// A tile is 4x4 outputs and the 6x6 inputs that they see.  Tiles are counted through the images,
// row by row; those at the right and lower border are partial.  Activations are blocked,
// [B, C/16, H, W, 16], and the channels behind the last one are zero, in and out.
//
// Three arrays hold what is transformed, one matrix for each of 36 frequencies:
//   v  [36][inner blocks][rows][16]    tiles of the input, B^T x B
//   m  [36][panel blocks][rows][16]    tiles of the output, before A^T m A; or A dy A^T
//   u  [36][inner blocks * 16][panel blocks * 16]    weights G w G^T of a panel, or their gradient
// A panel is 1 to 4 blocks of output channels.  Rows are tiles.  The strides between frequencies
// have one line more than the matrix, so that frequencies do not fall on one set of the cache.
// Thread-safe: nothing is kept between calls.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ridge/core/rounding.h"

namespace ridge::cpu {

inline constexpr int64_t kWinogradTile = 4, kWinogradPatch = 6, kFrequencies = 36;
inline constexpr int64_t kWinogradBlock = 16;    // contiguous channels
inline constexpr int64_t kMostPanelBlocks = 4;   // 64 channels
inline constexpr int64_t kWinogradRowGrain = 6;  // rows of v and m are a multiple
inline constexpr int64_t kWinogradWeightTaps = 9;

// Of one convolution, or of the one that computes a gradient of it.
struct WinogradShape {
  int64_t batch = 0, inner = 0, outer = 0;  // channels in and out
  int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  int64_t pad_y = 0, pad_x = 0;  // zeros in front of the input

  static int64_t Blocks(int64_t channels) { return CeilDiv(channels, kWinogradBlock); }
  int64_t inner_blocks() const { return Blocks(inner); }
  int64_t outer_blocks() const { return Blocks(outer); }
  int64_t tile_rows() const { return CeilDiv(out_height, kWinogradTile); }
  int64_t tile_columns() const { return CeilDiv(out_width, kWinogradTile); }
  int64_t tiles() const { return batch * tile_rows() * tile_columns(); }
};

// Floats from one frequency of v or m to the next.
inline int64_t FrequencyStride(int64_t blocks, int64_t rows) {
  return (blocks * rows + 1) * kWinogradBlock;
}

// Floats from one frequency of u to the next.
inline int64_t WeightStride(int64_t inner_blocks, int64_t blocks) {
  return (inner_blocks * kWinogradBlock * blocks + 1) * kWinogradBlock;
}

// Tiles [first, first + count) of a shape, kept as `rows` rows; rows behind `count` are not
// written.
struct TileRun {
  int64_t first = 0, count = 0, rows = 0;
};

// v of these tiles and all inner blocks; `padding` reads zero outside of x.
void WinogradInput(const WinogradShape& shape, const float* x, const TileRun& tiles, float* v);

enum class WinogradStep : uint8_t { kRelu, kAdd, kGelu, kSilu, kTanh, kSigmoid };

// What happens to an output before it is stored.
struct WinogradEpilogue {
  const float* bias = nullptr;  // [outer blocks * 16], zero behind the last channel
  std::vector<WinogradStep> steps;
  std::vector<const float*> extras;  // one for each kAdd, laid out as the output
};

// Blocks [first_block, first_block + blocks) of outer channels: y = A^T m A, then the epilogue.
void WinogradOutput(const WinogradShape& shape, const float* m, const TileRun& tiles,
                    int64_t first_block, int64_t blocks, const WinogradEpilogue& epilogue,
                    float* y);

// m = A dy A^T of the same blocks, which begin at m; bias_sums [blocks * 16] += sums of dy.
void WinogradGradOutput(const WinogradShape& shape, const float* dy, const TileRun& tiles,
                        int64_t first_block, int64_t blocks, float* m, float* bias_sums);

// Where the tap (n, k) of row-major weights begins: data + n * outer_stride + k * inner_stride.
struct WinogradWeights {
  int64_t outer_stride = 0, inner_stride = 0;
  bool flipped = false;  // taps in reverse order, for the gradient of the input
};

// Blocks of inner and of outer channels.
struct BlockRange {
  int64_t first_inner = 0, inner = 0;
  int64_t first_outer = 0, outer = 0;
};

// u = G w G^T of these blocks.
void WinogradTransformWeights(const WinogradShape& shape, const WinogradWeights& layout,
                              const float* w, const BlockRange& range, float* u);

// m (+)= v u for each frequency; all rows.  `v_stride` floats are between the frequencies of v.
struct Product {
  int64_t v_stride = 0;
  int64_t inner_blocks = 0, blocks = 0;
  int64_t rows = 0;
  bool add = false;
};
void WinogradProduct(const Product& p, const float* v, const float* u, float* m);

// u (+)= v^T m for each frequency, summed over the first `count` rows, for `inner_blocks` blocks
// that begin at v.  v and m have these strides between frequencies; u is dense.
struct GradProduct {
  int64_t v_stride = 0, m_stride = 0, u_stride = 0;
  int64_t inner_blocks = 0, blocks = 0;
  int64_t count = 0, rows = 0;
  bool add = false;
};
void WinogradGradProduct(const GradProduct& p, const float* v, const float* m, float* u);

// dw = G^T u G of inner channels [first_inner, first_inner + inner_count) of a panel; u begins at
// that channel and `u_stride` floats are between its frequencies.
void WinogradGradWeights(const WinogradShape& shape, const float* u, int64_t u_stride,
                         int64_t first_inner, int64_t inner_count, int64_t first_block,
                         int64_t blocks, float* dw);

}  // namespace ridge::cpu

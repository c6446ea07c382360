// How a Winograd convolution is cut into work, and what that costs; shared by conv, its two
// gradients and their tests.
#pragma once
#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/winograd_tiles.h"
#include "ridge/graph/ops/shared/conv.h"

namespace ridge::cpu {

// Two dimensions, 3x3, stride 1, dilation 1, one group, padding 0 to 2, with vectors of 16: the
// reason why not, or nullptr.
const char* WinogradRefusal(const ConvGeometry& g, Instructions vectors);

WinogradShape WinogradForward(const ConvGeometry& g);
// The convolution of dy with flipped weights that gives dx.
WinogradShape WinogradGradInput(const ConvGeometry& g);

// Threads split the tiles when the transformed weights fit beside them in the cache (each thread
// walks through its own tiles in blocks); else they split the panels of output channels, all
// reading the same transformed tiles.
struct WinogradSplit {
  int threads = 1;
  bool by_tiles = true;
  bool own_weights = false;  // by tiles: each thread transforms all weights for itself
  int64_t panel_blocks = 1;  // of output channels; the last panel may have less
  int64_t panels = 1;
  int64_t inner_blocks = 1;  // whose transformed weights are kept at once
  int64_t rows = 0;          // of v and m
  int64_t chunks = 1;        // runs of tiles that are transformed at once, for all
                             // threads or for one

  int64_t FirstBlock(int64_t panel) const { return panel * panel_blocks; }
};
WinogradSplit SplitWinograd(const WinogradShape& shape, int threads);
WinogradSplit SplitWinogradGrad(const WinogradShape& shape, int threads);

// Share of direct arithmetic's peak that Winograd reaches; below 1 direct is as good.
double WinogradEfficiency(const WinogradShape& shape, const ConvGeometry& g);

}  // namespace ridge::cpu

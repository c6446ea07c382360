#include <array>

#include "ridge/backend/cpu/kernels/winograd.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

// Transformed weights up to the first size each thread reads (and, of their gradient, writes) anew
// for each of its blocks of tiles; up to the second if it has many tiles.
constexpr int64_t kMostWeightBytes = int64_t{5} << 20, kMostWeightBytesOfMany = int64_t{10} << 20;
constexpr int64_t kManyTiles = 96;
constexpr int64_t kMostCopiesBytes = int64_t{48} << 20;  // one a thread
// Up to this size each thread transforms them for itself, if it has many tiles or if there is one
// panel, which one thread would transform for all.
constexpr int64_t kOwnWeightBytes = int64_t{5} << 20;
// A block has at least this many tiles where the weights do not stay in the second-level cache.
constexpr int64_t kLeastRows = 60, kCachedWeightBytes = int64_t{1} << 20;
// Bytes of weights transformed at a time if a run has few tiles, so that they stay in the
// second-level cache.
constexpr int64_t kWeightStepBytes = int64_t{640} << 10, kFewRows = 96;
// v and m of one thread's block of tiles.
constexpr int64_t kBlockBytes = int64_t{640} << 10;
// v (and m, for the weights' gradient) of a run of tiles that all threads share: in the last cache.
constexpr int64_t kChunkBytes = int64_t{12} << 20;

constexpr int64_t kRowBytes = kFrequencies * kWinogradBlock * static_cast<int64_t>(sizeof(float));

// `count` tiles in equal runs whose rows are at most `most`.
void CutTiles(int64_t count, int64_t most, WinogradSplit& split) {
  most = std::max(kWinogradRowGrain, most / kWinogradRowGrain * kWinogradRowGrain);
  split.chunks = CeilDiv(count, most);
  split.rows = RoundUp(CeilDiv(count, split.chunks), kWinogradRowGrain);
  split.chunks = CeilDiv(count, split.rows);
}

// As wide as possible, but a panel for each thread and threads with equally many panels.
int64_t PanelBlocks(int64_t blocks, int threads) {
  int64_t best = 1, best_time = INT64_MAX;
  for (int64_t width = std::min(blocks, kMostPanelBlocks); width >= 1; --width) {
    const int64_t time = CeilDiv(CeilDiv(blocks, width), threads) * (8 * width + 1);
    if (time >= best_time) continue;
    best = width;
    best_time = time;
  }
  return best;
}

int64_t WeightBytes(const WinogradShape& s) {
  return s.inner_blocks() * s.outer_blocks() * kWinogradBlock * kRowBytes;
}

// `own_blocks` and `shared_blocks`: blocks of channels of a row of v and m that each thread keeps,
// or that all share.
// `copies`: of the transformed weights.
WinogradSplit Split(const WinogradShape& s, int threads, int64_t copies, int64_t own_blocks,
                    int64_t shared_blocks) {
  WinogradSplit split;
  split.threads = threads;
  split.inner_blocks = s.inner_blocks();
  const int64_t weights = WeightBytes(s), own_tiles = CeilDiv(s.tiles(), threads);
  split.by_tiles =
      weights <= (own_tiles < kManyTiles ? kMostWeightBytes : kMostWeightBytesOfMany) &&
      weights * copies <= kMostCopiesBytes;
  if (split.by_tiles) {
    split.panel_blocks = std::min(s.outer_blocks(), kMostPanelBlocks);
    const int64_t rows = kBlockBytes / (own_blocks * kRowBytes);
    CutTiles(own_tiles, weights > kCachedWeightBytes ? std::max(rows, kLeastRows) : rows, split);
  } else {
    split.panel_blocks = PanelBlocks(s.outer_blocks(), threads);
    CutTiles(s.tiles(), kChunkBytes / (shared_blocks * kRowBytes), split);
    const int64_t step = kWeightStepBytes / (split.panel_blocks * kWinogradBlock * kRowBytes);
    if (split.rows <= kFewRows) split.inner_blocks = std::clamp<int64_t>(step, 1, s.inner_blocks());
  }
  split.panels = CeilDiv(s.outer_blocks(), split.panel_blocks);
  return split;
}

// Cycles of one core (measured; Zen 4) for one block of 16 channels of one tile; and for the 256
// weights of a pair of blocks, their way through the caches included.
constexpr double kInputCycles = 230, kOutputCycles = 190;
constexpr double kWeightCycles = 16 * 700;
constexpr double kProductShare = 0.88;  // of one multiply-add a cycle
constexpr double kDirectShare = 0.93;

}  // namespace

const char* WinogradRefusal(const ConvGeometry& g, Instructions vectors) {
  if (g.window.rank != 2) return refusal::kRank;
  if (g.groups != 1) return refusal::kAttribute;
  for (const WindowAxis& axis : g.window.own()) {
    if (!axis.IsWinograd() || axis.pad_begin > 2 || axis.pad_end > 2) return refusal::kAttribute;
  }
  return vectors == Instructions::kAvx512 ? nullptr : refusal::kInstructions;
}

WinogradShape WinogradForward(const ConvGeometry& g) {
  const WindowAxis &y = g.window.y(), &x = g.window.x();
  return {.batch = g.batch,
          .inner = g.inputs(),
          .outer = g.outputs(),
          .in_height = y.input,
          .in_width = x.input,
          .out_height = y.output,
          .out_width = x.output,
          .pad_y = y.pad_begin,
          .pad_x = x.pad_begin};
}

WinogradShape WinogradGradInput(const ConvGeometry& g) {
  const WindowAxis &y = g.window.y(), &x = g.window.x();
  return {.batch = g.batch,
          .inner = g.outputs(),
          .outer = g.inputs(),
          .in_height = y.output,
          .in_width = x.output,
          .out_height = y.input,
          .out_width = x.input,
          .pad_y = 2 - y.pad_begin,
          .pad_x = 2 - x.pad_begin};
}

WinogradSplit SplitWinograd(const WinogradShape& shape, int threads) {
  WinogradSplit split = Split(shape, threads, /*copies=*/1, shape.inner_blocks() + kMostPanelBlocks,
                              shape.inner_blocks());
  const int64_t weights = WeightBytes(shape);
  split.own_weights = split.by_tiles && weights <= kOwnWeightBytes &&
                      weights * threads <= kMostCopiesBytes &&
                      (split.panels == 1 || CeilDiv(shape.tiles(), threads) >= kManyTiles);
  return split;
}

WinogradSplit SplitWinogradGrad(const WinogradShape& shape, int threads) {
  const int64_t both = shape.inner_blocks() + shape.outer_blocks();
  return Split(shape, threads, /*copies=*/threads, both, both);
}

double WinogradEfficiency(const WinogradShape& s, const ConvGeometry& g) {
  const auto tiles = static_cast<double>(s.tiles());
  const auto inner = static_cast<double>(s.inner_blocks()),
             outer = static_cast<double>(s.outer_blocks());
  const double product =
      tiles * inner * outer * double{kFrequencies * kWinogradBlock} / kProductShare;
  const double cycles = product + tiles * (inner * kInputCycles + outer * kOutputCycles) +
                        inner * outer * kWeightCycles;
  const double direct = static_cast<double>(g.flops()) / 2 / double{kWinogradBlock} / kDirectShare;
  return direct / cycles;
}

}  // namespace ridge::cpu

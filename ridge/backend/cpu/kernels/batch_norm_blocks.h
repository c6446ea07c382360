// What the kernels of batch normalization share: x [B,C,...] as planes, one sample's block of
// channels each, and sums over a block's lanes (norm_planes.h) as sums over its channels.
#pragma once
#include <algorithm>
#include <span>

#include "ridge/backend/backend.h"
#include "ridge/backend/cpu/kernels/norm_planes.h"
#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {

struct NormBlocks {
  static constexpr int64_t kChunk = 4096;  // elements of one piece of a plane, of kNormLanes

  int64_t batch = 1, channels = 1, blocks = 1, block = 1;
  int64_t run = 1;  // elements of a plane
  double epsilon = 0;

  NormBlocks(const Dims& x, const ChannelBlocks& layout, double epsilon);

  int64_t pieces() const { return CeilDiv(run, kChunk); }  // of a plane
  int64_t items() const { return batch * pieces(); }       // of a block of channels
  // Of a block of channels, the ones that are no padding.
  int64_t ChannelsOf(int64_t of) const { return std::min(block, channels - of * block); }
  // Elements of one channel.
  double elements() const { return static_cast<double>(batch * (run / block)); }
};

// Calls f(offset, count) for items of a block of channels.
template <typename F>
void ForItems(const NormBlocks& p, int64_t block, Range items, const F& f) {
  for (int64_t item = items.begin; item < items.end; ++item) {
    const int64_t plane = item / p.pieces() * p.blocks + block;
    const int64_t begin = item % p.pieces() * NormBlocks::kChunk;
    f(plane * p.run + begin, std::min(NormBlocks::kChunk, p.run - begin));
  }
}

// Sums over a block of channels, which all threads share: `sweep(block, items, sums)` for each
// part. `workspace` has a Sums for each thread.
template <typename Sums, typename Sweep>
std::span<const Sums> SweepByParts(const NormBlocks& p, int64_t block, int threads, void* workspace,
                                   const Sweep& sweep) {
  auto* parts = static_cast<Sums*>(workspace);
  ForEachPart(threads, [&](int part) {
    parts[part] = Sums();
    sweep(block, PartOf(p.items(), threads, part), parts[part]);
  });
  return {parts, static_cast<size_t>(threads)};
}

// Scale, shift and statistics of a block of channels, spread over the lanes; lanes of the padding
// give 0.  `shift` may be null: 0.
LaneNorm NormOf(const NormBlocks& p, int64_t block, const float* scale, const float* shift,
                const float* mean, const float* var);

// Mean and biased variance of the block's channels, from the parts' moments in their order.
void WriteMoments(const NormBlocks& p, int64_t block, std::span<const LaneMoments> parts,
                  float* mean, float* var);

// Sums over channel `k` of a block, over the parts in their order.
struct ChannelGradSums {
  double g = 0, gx = 0;
};
ChannelGradSums SumsOf(const NormBlocks& p, int64_t k, std::span<const LaneGradSums> parts);

// 1 / sqrt(var + epsilon).
double InverseDeviation(const NormBlocks& p, float var);

}  // namespace ridge::cpu

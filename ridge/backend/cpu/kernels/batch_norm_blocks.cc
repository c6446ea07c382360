#include "ridge/backend/cpu/kernels/batch_norm_blocks.h"

#include <cmath>

namespace ridge::cpu {

NormBlocks::NormBlocks(const Dims& x, const ChannelBlocks& layout, double epsilon)
    : batch(x[0]),
      channels(x[1]),
      blocks(layout.blocks),
      block(layout.block),
      run(layout.block),
      epsilon(epsilon) {
  for (size_t d = 2; d < x.size(); ++d) run *= x[d];
}

LaneNorm NormOf(const NormBlocks& p, int64_t block, const float* scale, const float* shift,
                const float* mean, const float* var) {
  LaneNorm norm;
  for (int64_t lane = 0; lane < kNormLanes; ++lane) {
    const int64_t c = block * p.block + lane % p.block;
    if (c >= p.channels) continue;
    norm.mean[lane] = mean[c];
    norm.slope[lane] = static_cast<float>(double{scale[c]} / std::sqrt(double{var[c]} + p.epsilon));
    norm.shift[lane] = shift == nullptr ? 0 : shift[c];
  }
  return norm;
}

void WriteMoments(const NormBlocks& p, int64_t block, std::span<const LaneMoments> parts,
                  float* mean, float* var) {
  for (int64_t k = 0; k < p.ChannelsOf(block); ++k) {
    double count = 0, average = 0, m2 = 0;
    for (const LaneMoments& part : parts) {
      for (int64_t lane = k; lane < kNormLanes; lane += p.block) {
        if (part.count[lane] == 0) continue;
        const double total = count + part.count[lane], share = part.count[lane] / total;
        const double distance = part.mean[lane] - average;
        m2 += part.m2[lane] + distance * distance * count * share;
        average += distance * share;
        count = total;
      }
    }
    mean[block * p.block + k] = static_cast<float>(average);
    var[block * p.block + k] = static_cast<float>(m2 / std::max(count, 1.0));
  }
}

ChannelGradSums SumsOf(const NormBlocks& p, int64_t k, std::span<const LaneGradSums> parts) {
  ChannelGradSums sums;
  for (const LaneGradSums& part : parts) {
    for (int64_t lane = k; lane < kNormLanes; lane += p.block) {
      sums.g += part.g[lane];
      sums.gx += part.gx[lane];
    }
  }
  return sums;
}

double InverseDeviation(const NormBlocks& p, float var) {
  return 1 / std::sqrt(double{var} + p.epsilon);
}

}  // namespace ridge::cpu

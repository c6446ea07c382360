#include "ridge/plan/choose/pipeline_formula.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ridge {
namespace {

// The end of each block in forward seconds.
std::vector<double> EndsOf(const LocalStep& step) {
  std::vector<double> ends;
  double at_s = 0;
  for (const LocalBlock& block : step.blocks)
    ends.push_back(at_s += block.forward_s + block.forward_line_s);
  return ends;
}

// The block behind which the cut nearest to `target_s` lies, with enough blocks on both sides.
size_t CutNear(const std::vector<double>& ends, double target_s, size_t least, size_t most) {
  size_t best = least;
  for (size_t b = least; b <= most; ++b) {
    if (std::abs(ends[b] - target_s) < std::abs(ends[best] - target_s)) best = b;
  }
  return best;
}

StageBlocks StageOf(const LocalStep& step, size_t first, size_t last, double total_s) {
  StageBlocks stage = {first, last};
  for (size_t b = first; b < last; ++b) {
    const LocalBlock& block = step.blocks[b];
    stage.forward_s += block.forward_s;
    stage.forward_line_s += block.forward_line_s;
    stage.forward_kernels += block.forward_kernels;
    stage.saved_bytes += block.saved_bytes;
    stage.parameter_bytes += block.parameter_bytes;
  }
  if (first > 0) stage.received_bytes = step.blocks[first - 1].crossing_bytes;
  stage.share = total_s > 0 ? stage.forward_s / total_s : 1;
  return stage;
}

// Of `groups` runs of blocks that are computed again one by one.
int64_t BytesOfGroups(const LocalStep& step, const StageBlocks& stage, size_t groups,
                      int64_t in_flight) {
  const size_t blocks = stage.last - stage.first;
  int64_t kept = stage.received_bytes, most = 0;
  for (size_t g = 0; g < groups; ++g) {
    const size_t from = stage.first + g * blocks / groups;
    const size_t to = stage.first + (g + 1) * blocks / groups;
    int64_t saved = 0;
    for (size_t b = from; b < to; ++b) saved += step.blocks[b].saved_bytes;
    if (g > 0) kept += step.blocks[from - 1].crossing_bytes;
    most = std::max(most, saved);
  }
  return in_flight * kept + most;
}

}  // namespace

std::vector<StageBlocks> SplitStages(const LocalStep& step, int64_t stages) {
  const auto count = static_cast<size_t>(stages);
  if (step.blocks.size() < count) return {};
  const std::vector<double> ends = EndsOf(step);
  const double total_s = step.forward_s();
  std::vector<StageBlocks> split;
  size_t first = 0;
  for (size_t s = 0; s + 1 < count; ++s) {
    const double target_s = ends.back() * static_cast<double>(s + 1) / static_cast<double>(stages);
    const size_t cut = CutNear(ends, target_s, first, step.blocks.size() - (count - s));
    split.push_back(StageOf(step, first, cut + 1, total_s));
    first = cut + 1;
  }
  split.push_back(StageOf(step, first, step.blocks.size(), total_s));
  return split;
}

int64_t InFlight(int64_t stages, int64_t stage, int64_t micro_batches) {
  return std::min(micro_batches, stages - stage);
}

int64_t RecomputedBytes(const LocalStep& step, const StageBlocks& stage, int64_t in_flight) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (size_t groups = 1; groups <= stage.last - stage.first; ++groups)
    least = std::min(least, BytesOfGroups(step, stage, groups, in_flight));
  return least;
}

}  // namespace ridge

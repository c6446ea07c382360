// Pipelines by formula: stages of whole blocks, micro-batches one forward and one backward in turn
// (1F1B, Narayanan et al., 2021).
//
//   idle share of a step   (p - 1) / (m + p - 1)     p stages, m micro-batches
//   kept in stage s        activations of min(m, p - s) micro-batches
#pragma once
#include <cstdint>
#include <vector>

#include "ridge/plan/choose/local_step.h"

namespace ridge {

// Blocks first .. last - 1.
struct StageBlocks {
  size_t first = 0, last = 0;
  double forward_s = 0, forward_line_s = 0;  // of its blocks
  double share = 0;                          // of the forward pass, and so of the backward one
  int64_t forward_kernels = 0;
  int64_t saved_bytes = 0, parameter_bytes = 0;
  int64_t received_bytes = 0;  // from the stage before
};

// Stages of about equal forward seconds.  Empty where there are fewer blocks than stages.
std::vector<StageBlocks> SplitStages(const LocalStep& step, int64_t stages);

// Micro-batches whose activations stage `stage` keeps at one time.
int64_t InFlight(int64_t stages, int64_t stage, int64_t micro_batches);

// Turns of one micro-batch in which a stage waits for others.
inline int64_t BubbleTurns(int64_t stages) { return stages - 1; }

// What a stage keeps of `in_flight` micro-batches when it keeps the inputs of some blocks and
// computes what is behind each again: the number of kept ones with the fewest bytes.
int64_t RecomputedBytes(const LocalStep& step, const StageBlocks& stage, int64_t in_flight);

}  // namespace ridge

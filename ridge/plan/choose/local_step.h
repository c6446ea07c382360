// LocalStep: what one rank does with one micro-batch, block by block: the facts of which layouts
// over many devices are composed (layout_cost.h).
//
// It is taken from a rank's planned graph, of which only the tensor axis is cut.  A block lies
// between two places where few bytes go from the forward pass before to the one behind: where a
// pipeline may be cut and what is recomputed may begin.  They are found by these bytes, not by
// names.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

struct LocalBlock {
  double forward_s = 0;         // of its kernels
  double forward_line_s = 0;    // of collectives in line with them
  int64_t forward_kernels = 0;  // that are launched one by one
  int64_t saved_bytes = 0;      // results that the backward pass reads
  int64_t parameter_bytes = 0;  // of parameters that are read here first
  int64_t crossing_bytes = 0;   // results from before its end that later blocks read
};

struct LocalStep {
  std::vector<LocalBlock> blocks;
  double backward_s = 0, backward_line_s = 0;  // of all blocks
  int64_t backward_kernels = 0;
  double update_s = 0;  // of the optimizer, all parameters
  int64_t flops = 0;    // without the update
  int64_t parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;
  int64_t other_bytes = 0;      // statistics, inputs
  int64_t transient_bytes = 0;  // live at most beside what is saved and gradients
  int64_t runtime_bytes = 0;    // beside the arena

  double forward_s() const;
  double forward_line_s() const;
};

// Of the step `train` of a program; `eager`: its operators run step by step.  `in_line_s`: seconds
// of a node that is a collective, below 0 for kernels.  REQUIRES: an output `loss`.
LocalStep LocalStepOf(const Program& program, int64_t runtime_bytes, bool eager,
                      const std::function<double(const PlannedNode&)>& in_line_s);

// Between the steps of two numbers of samples of one graph, `share` of the way from `a` to `b`,
// which may be beyond 1.  REQUIRES: as many blocks.
LocalStep Between(const LocalStep& a, const LocalStep& b, double share);

// With kernels so many times as long.
LocalStep WithKernels(const LocalStep& step, double times);

}  // namespace ridge

// PlanWithSavings: chooses a batch's number of slices and the recomputed values, to save memory.
//
// A slice's activations are small: they need fewer bytes and stay in the caches.  The cost:
// gradients are summed, weights are reread in each slice, and small kernels are launched more
// often.  docs/design/0006-slices.md.
// Recomputation costs a pass over memory for each value that is not kept.
// docs/design/0013-recompute.md.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ridge/learn/training_graph.h"
#include "ridge/lower/pipeline.h"
#include "ridge/plan/program.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge {

struct SliceQuestion {
  const TrainOptions& options;
  const Graph& forward;  // of the whole batch
  const ForwardFacts& facts;
  bool with_eval;       // the program has an `eval` besides the update
  int64_t limit_bytes;  // of the process, without data
  const Machine& machine;
};

struct SlicedProgram {
  int64_t slices = 1;
  std::string recompute = "off";  // as in the options: the values that backward recomputes
  Program program;
  bool keeps_many = false;  // many activations, none of which `auto` found worth recomputing
  bool recomputes() const { return recompute != "off"; }
  std::map<std::string, std::vector<PassReport>> passes;  // by StepPlan
};

// Plans the program by options.slices and options.recompute.  `auto` compares a few plans by their
// bytes and by the seconds of the nominal device.
// Slices: among the plans that fit `limit_bytes`, the fewest slices within 5 % of the fastest plan.
// If the whole batch fits, a number of slices is planned only while it could gain 5 %: even with
// all bytes in a cache, and less the cost of slicing extrapolated from the last plan.
// Recompute: the values that are worth their time (slicing.cc has the limit); if the whole batch
// does not fit, as many as are needed.  With `auto`, graphs of more than 2,000 nodes are neither
// sliced nor recomputed.
// Deterministic.  Fails with kUnsupported when options.slices is above 1 and the graph couples
// samples: the message names the node.
Result<SlicedProgram> PlanWithSavings(const SliceQuestion& question);

}  // namespace ridge

// In how many slices a job runs its batch, and whether it recomputes: how it saves memory.
//
// A slice's activations are small: they stay in the caches, and fewer bytes are needed for them.
// What slicing costs is that gradients are added up, that weights are read again for each slice,
// and that small kernels are started more often.  docs/design/0006-slices.md.
// Recomputing costs a sweep over memory for each value that need not be kept.
// docs/design/0013-recompute.md.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/passes/pipeline.h"
#include "ridge/learn/training_graph.h"
#include "ridge/plan/program.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge {

struct SliceQuestion {
  const TrainOptions& options;
  const Graph& forward;  // of the whole batch
  const ForwardFacts& facts;
  bool with_eval;       // the program has an `eval` beside the update
  int64_t limit_bytes;  // what it may use
  const Machine& machine;
};

struct SlicedProgram {
  int64_t slices = 1;
  std::string recompute = "off";  // as in the options: what is made again for backward
  Program program;
  bool keeps_many = false;  // activations, of which `auto` found none worth making again
  bool recomputes() const { return recompute != "off"; }
  std::map<std::string, std::vector<PassReport>> passes;  // by StepPlan
};

// The planned program, as options.slices and options.recompute say.  `auto` compares a few plans by
// their bytes and by the seconds of the nominal device.
// Slices: of those that fit into `limit_bytes` the fewest that are foreseen to be within 5 % of the
// fastest; none are planned where the whole batch fits and would not gain that if all it touches
// lay in a cache, nor more where what the slices planned before cost would outgrow it.  Recompute:
// the values that are worth their time (slicing.cc has the number), and where the whole batch does
// not fit as many as it takes.  Graphs of more than 2,000 nodes are neither cut nor recomputed
// unasked. Deterministic. Fails with kUnsupported when options.slices asks for several and the
// graph couples samples: the message names the node.
Result<SlicedProgram> PlanWithSavings(const SliceQuestion& question);

}  // namespace ridge

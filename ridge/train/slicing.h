// In how many slices a job runs its batch, and whether it recomputes: how it saves memory.
//
// A slice's activations are small: they stay in the caches, and fewer bytes are needed for them.
// What slicing costs is that gradients are added up, that weights are read again for each slice,
// and that small kernels are started more often.  docs/design/0006-slices.md.
// Recomputing costs a sweep over memory for each value that need not be kept.
// docs/design/0013-recompute.md.
#pragma once
#include <cstdint>

#include "ridge/train/job_data.h"
#include "ridge/train/machine.h"
#include "ridge/train/options.h"
#include "ridge/train/training_graph.h"

namespace ridge {

// The forward graph after the passes that pay before differentiation.
Result<Graph> SimplifyForward(const Graph& forward, const std::string& passes);

// A forward graph as a job runs it, simplified.
struct SlicedForward {
  int64_t slices = 1;
  Graph graph;                 // for one slice of the batch; the whole one for 1
  bool mean_of_slices = true;  // the loss of the batch is the mean of those of the slices
  bool recompute = false;      // cheap values are made again for backward (NamedGraph::recompute)
};

// As options.slices and options.recompute say.  `auto` compares a few plans by their bytes and by
// the seconds of the nominal device.
// Slices: of those that fit into `limit_bytes` the fewest that are foreseen to be within 5 % of the
// fastest.  Recompute: where nothing fits without it, or where the share
// of bytes that it frees is worth the share of time that it costs (slicing.cc has the numbers).
// Graphs of more than 2,000 nodes are neither cut nor recomputed unasked.  Deterministic.
// Fails with kUnsupported when options.slices asks for several and the graph couples samples: the
// message names the node.
Result<SlicedForward> ChooseSavings(const TrainOptions& options, const Graph& forward,
                                    const ForwardFacts& facts, int64_t limit_bytes,
                                    const Machine& machine);

// What the job is built from.
TrainingGraphOptions GraphOptions(const TrainOptions& options, const SlicedForward& sliced);

}  // namespace ridge

// Whether a step over a batch equals steps over slices of it, and the graph of such a slice.
//
// A batch can be cut where no node on the way to the outputs couples samples, and those are means
// or sums over them.  Gradients are linear in the loss, so those of the slices add up to those of
// the batch: exactly but for rounding.
//
// What follows from the inputs alone, such as how many labels count, may couple samples: a slice
// computes it for the whole batch, from inputs of its own that hold all of it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// In the graph of a slice the input `ridge.whole.x` is all of the input `x`.
inline constexpr char kWholePrefix[] = "ridge.whole.";
bool IsWholeInput(const std::string& name);

struct SampleAxes {
  // By value: an axis, or one of sample_laws.h's.  Values that the outputs do not need may say
  // anything.
  std::vector<int> axes;
  // By node, its inputs that must be those of the whole batch.
  std::map<NodeId, std::vector<size_t>> whole;
};

// `samples` are inputs whose dimension 0 counts samples.  An input `rng` (i64[3]) numbers them.
// Fails with kUnsupported and the first node that couples samples before one of `roots`, or the
// root that is something else than their mean or sum; or when the graph updates variables.
Result<SampleAxes> FindSampleAxes(const Graph& graph, const std::vector<ValueId>& roots,
                                  const std::vector<ValueId>& samples);

// The part of `graph` that its outputs need, for 1 / slices of the samples.  All inputs stay.
// REQUIRES: `slices` divides the number of samples.
// Fails with kUnsupported where a node is not what the axes promise.
Result<Graph> SliceGraph(const Graph& graph, const SampleAxes& samples, int64_t slices);

}  // namespace ridge

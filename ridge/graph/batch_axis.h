// Whether a step over a batch equals steps over slices of it, and the graph of such a slice.
//
// A batch can be cut if no node between inputs and outputs couples samples and the outputs are
// means or sums over samples.  Gradients are linear in the loss, so the slices' gradients add up to
// the batch's: exactly but for rounding.
//
// Values that depend only on inputs, such as the number of counted labels, may couple samples: each
// slice computes them for the whole batch, from additional inputs that hold all of it.
#pragma once
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// The sample axis of a value: the axis that consists of one block per sample, in order and of equal
// size; or one of these.
inline constexpr int kReplicated = -1;   // replicated: the value is the same for every sample
inline constexpr int kPartialMean = -2;  // the mean over the samples' contributions
inline constexpr int kPartialSum = -3;   // the sum

// In the graph of a slice the input `ridge.whole.x` is all of the input `x`.
inline constexpr char kWholePrefix[] = "ridge.whole.";
bool IsWholeInput(const std::string& name);

struct BatchAxes {
  // By value: an axis, or one of the constants above.  Undefined for values that the outputs do
  // not need.
  std::vector<int> axes;
  // By node: the inputs that must hold the whole batch.
  std::map<NodeId, std::vector<size_t>> whole;
  // Operators that couple samples, over slices in step (OpDef::slices_attr).
  std::set<NodeId> in_step;
};

// How the slices of a batch run.
enum class SliceOrder {
  kOneByOne,  // each slice through all nodes
  kInStep,    // each node on all slices, before the next one
};

// The sample axis of each output of a call, from those of its inputs and the number of samples;
// empty when the call couples samples or may couple them.
std::vector<int> BatchAxesAfter(const OpDef& op, const OpCall& call, std::span<const int> inputs,
                                int64_t batch);

// `samples` are inputs whose dimension 0 counts samples.  An input `rng` (i64[3]) numbers them.
// Fails with kUnsupported and the first node before one of `roots` that couples samples, or a root
// that is neither their mean nor sum, nor has them along dimension 0; and when the graph updates a
// variable, unless its slices run in step and the update is the same for all of them.
Result<BatchAxes> FindBatchAxes(const Graph& graph, const std::vector<ValueId>& roots,
                                const std::vector<ValueId>& samples,
                                SliceOrder order = SliceOrder::kOneByOne);

// The part of `graph` that its outputs and updates need, for 1 / slices of the samples.  All inputs
// stay. REQUIRES: `slices` divides the number of samples. Fails with kUnsupported when a node of
// the slice does not have the types that the axes imply.
Result<Graph> SliceGraph(const Graph& graph, const BatchAxes& samples, int64_t slices);

}  // namespace ridge

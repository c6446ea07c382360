// NamedGraph: one of the graphs of a job, and how a step runs it over a batch.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/slice_tree.h"
#include "ridge/graph/graph.h"

namespace ridge {

struct NamedGraph {
  std::string name;  // of the StepPlan
  Graph graph;       // of one slice

  // A step runs the batch in `slices` equal parts.  `sliced_inputs` hold one part; `accumulators`
  // are states, each with an update that adds to it.  The sums start at 0 in every step; other
  // nodes that read a sum, old or new, run only in the last slice.
  int64_t slices = 1;
  std::vector<std::string> sliced_inputs = {};
  std::vector<std::string> accumulators = {};
  std::vector<std::string> stacked_outputs = {};  // hold the parts of all slices, in their order

  // The sums are added in the order of core/slice_tree.h, and `slices` are this rank's share of the
  // batch.  Then the update of an accumulator is a slice's addend, and what reads the accumulator
  // reads the sum over the batch.
  std::optional<SliceShare> share = std::nullopt;
  DType wire = DType::kF32;  // or bf16: sums of f32 gradients in the tree are rounded to it

  bool in_slices() const { return slices > 1 || share.has_value(); }

  bool may_recompute = false;  // its backward pass may recompute values instead of keeping them
};

}  // namespace ridge

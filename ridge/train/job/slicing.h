// SearchTrainingPlan: the plan of a training by its options, chosen by plan/search.
//
// Here are the graphs that the search compares: the forward graph of a slice, after the passes that
// pay before differentiation, with gradients, optimizer and evaluation.
#pragma once
#include "ridge/learn/length_form.h"
#include "ridge/learn/training_graph.h"
#include "ridge/plan/search/search.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge {

struct SearchRequest {
  const TrainOptions& options;
  const Graph& forward;  // of the whole batch
  const ForwardInfo& facts;
  bool with_eval;       // the program has an `eval` besides the update
  int64_t limit_bytes;  // of the process, without data
  const Machine& machine;
  const std::vector<LengthForm>& lengths;  // further steps; each is a form of `forward`
};

// Of a budget: none, since the search finds them.
RecomputeLimits LimitsOf(const RecomputeOption& option);

// With sums in a tree and `--slices auto`: the fewest slices of which every rank has one, a power
// of two where the batch allows it; with unequal shares enough of them to be shared out so.
int64_t FewestSlices(int64_t batch, int64_t ranks, const SharesOption& shares = {});

// Plans the program by options.slices and options.recompute.  With sums in a tree `auto` is
// FewestSlices(), and what `auto` recomputes is chosen for the rank with the most slices: it is the
// same on all.  With `auto`, graphs of more than
// 2,000 nodes are neither sliced nor recomputed.
// Deterministic.  Fails with kUnsupported when options.slices is above 1 and the graph couples
// samples: the message names the node.
Result<PlanChoice> SearchTrainingPlan(const SearchRequest& request);

}  // namespace ridge

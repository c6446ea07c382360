// The passes in order, the selection of passes, and the savings of each.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/lower/kernel_query.h"

namespace ridge {

// A rewrite of the graph ("fold"), or one of the planner's steps that the same option switches
// ("inplace", "layout").  Passes run on the whole step; those marked `forward` also run before
// differentiation, whose gradients read the values that they shrink.
struct PassInfo {
  const char* name;
  const char* what;  // one line for help texts
  // nullptr: the planner does it
  Result<Graph> (*run)(Graph, const RewriteRules&) = nullptr;
  bool forward = false;
};

// In the order in which they run.
const std::vector<PassInfo>& AllPasses();

// Which passes run.
struct PassSelection {
  std::vector<std::string> names;  // in the order of AllPasses()
  bool Has(std::string_view name) const;
};

// ""                all
// "none"            none
// "-fuse,-layout"   all but these
// "only:fold,cse"   these
// Fails with kInvalidArgument for a name that is not known.
Result<PassSelection> ParsePassSpec(std::string_view spec);

// Those of a selection that run on the forward graph before it is differentiated.
PassSelection ForwardPasses(const PassSelection& selection);

// What a graph costs, device-independent.
struct GraphSize {
  int64_t nodes = 0;
  int64_t result_bytes = 0;  // of everything that nodes write
  double flops = 0;
  double traffic_bytes = 0;  // read and written by nodes
};
GraphSize MeasureGraph(const Graph& graph);

struct PassReport {
  std::string name;
  GraphSize before;
  GraphSize after;
};

// Runs the selected rewrites for the device of `rules` and checks the graph after each (builds with
// assertions) or after the last.  `reports` may be null. A graph that breaks an invariant is a bug
// of the pass: kInternal with its name.
Result<Graph> RunPasses(Graph graph, const PassSelection& selection, const RewriteRules& rules,
                        std::vector<PassReport>* reports = nullptr);

// What is made of the graph of a step.
struct StepRewrites {
  PassSelection passes;
  DType operands = DType::kF32;  // of products (autocast.h); below f32 activations follow
  // Cuts logits into chunks of rows (chunk_loss.h).  May be empty.
  std::function<Result<Graph>(Graph)> chunk_loss = nullptr;
  // Gives the backward pass copies of values (recompute.h).  May be empty.
  std::function<Result<Graph>(Graph)> recompute = nullptr;
  bool group_updates = false;  // small ones, where the device groups them (group_updates.h)
};

// The passes, and between them what StepRewrites asks for.
Result<Graph> RewriteStep(Graph graph, const StepRewrites& rewrites, KernelQuery& kernels,
                          std::vector<PassReport>* reports = nullptr);

}  // namespace ridge

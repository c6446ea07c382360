// Lowering: a graph becomes a StepPlan without offsets.
//
// Visits the nodes in schedule order and picks each one's kernel and operand layouts: the cheapest
// of the backend's kernel candidates, reorders included.  Reorders become nodes and are shared by
// all later readers.  Views (reshape) become values that share bytes.
#pragma once
#include <optional>
#include <vector>

#include "ridge/plan/host_nodes.h"
#include "ridge/plan/persistent_region.h"

namespace ridge {

inline constexpr NodeId kNoNode = -1;

struct LoweredGraph {
  StepPlan step;
  std::vector<NodeId> sources;  // by node of the step: the node of the graph; kNoNode: a reorder
};

// By node of a graph: the kernel that an earlier walk chose.
struct DecidedKernel {
  KernelChoice choice;
  std::vector<KernelRefusal> refusals;
};
using DecidedKernels = std::vector<std::optional<DecidedKernel>>;

// What is known before a graph is walked.
struct GraphFacts {
  const std::set<std::string>& host_variables;
  const std::vector<bool>& host_nodes;
  const DecidedKernels* decided = nullptr;  // kernels that an earlier walk over this graph chose
};

// Fills nodes, values, inputs, outputs.  Values of the persistent region have persistent_index set.
// `persistent` gains the variables, inputs and constants of this graph; equal names share one
// value.
Result<LoweredGraph> LowerGraph(const NamedGraph& named, KernelQuery& kernels,
                                const PlanOptions& options, PersistentRegion& persistent,
                                const GraphFacts& facts);

// The node that copies a value into another layout, or beside itself.
// REQUIRES: both values have the same type.  The caller sets inputs and outputs.
PlannedNode ReorderNode(KernelQuery& kernels, const PlannedValue& source,
                        const PlannedValue& target);

}  // namespace ridge

// The search over layouts: all factors of the devices into pipeline stages, data and tensor ranks,
// each with every stage of ZeRO, sequence, recomputing and micro-batches, composed by
// plan/choose/layout_cost.h.
//
// Layouts whose variables alone are too large are not composed, nor larger micro-batches behind one
// that does not fit.  A tensor axis stays within a node.
#pragma once
#include <optional>
#include <vector>

#include "ridge/partition/layouts.h"
#include "ridge/plan/choose/layout_cost.h"
#include "ridge/train/job/local_steps.h"

namespace ridge {

struct LayoutRequest {
  TrainOptions options;  // the batch of an update: batch * accumulate
  MeshLinks links;
  int64_t limit_bytes = 0;     // of a device
  size_t refined = 5;          // of the fastest: planned with their own micro-batch
  bool only_sequence = false;  // a tensor axis cuts tokens too: fewer graphs to plan
};

struct LayoutsFound {
  std::vector<LayoutCost> fitting;     // of each mesh the fastest, fastest first
  int64_t fit = 0;                     // of all layouts
  std::optional<LayoutCost> smallest;  // of those that do not fit: the fewest bytes
  int64_t variables_too_large = 0;     // layouts that were not composed
  int64_t least_variable_bytes = 0;    // of these: the fewest; 0: there is none
  int64_t too_large = 0;               // composed
  int64_t planned_steps = 0;           // graphs of a rank, so far
  std::string no_tensor;               // why a tensor axis has no use; empty: it has
};

// Fails as LocalSteps do for one device, and with kInvalidArgument where no number of ranks divides
// the batch.
Result<LayoutsFound> SearchLayouts(const LayoutRequest& request, const Machine& machine);
// With steps that are planned once for searches over several numbers of devices of one cluster.
Result<LayoutsFound> SearchLayouts(const LayoutRequest& request, LocalSteps& steps);

// One layout.  Fails as LocalSteps do, and with kInvalidArgument for more stages than blocks.
Result<LayoutCost> PlanLayout(const LayoutRequest& request, const LayoutChoice& choice,
                              const Machine& machine);

}  // namespace ridge

// SearchPlan: chooses a batch's number of slices and the recomputed values, to save memory.
//
// A slice's activations are small: they need fewer bytes and stay in the caches.  The cost:
// gradients are summed, weights are reread in each slice, and small kernels are launched more
// often.  docs/design/0006-slices.md.
// Recomputation costs a pass over memory for each value that is not kept.
// docs/design/0013-recompute.md.
// Logits in chunks cost an addition to their weight's gradient for each.
// docs/design/0062-loss-chunks.md.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ridge/graph/named_graph.h"
#include "ridge/lower/chunk_loss.h"
#include "ridge/lower/pipeline.h"
#include "ridge/plan/hardware/offload.h"
#include "ridge/plan/planner.h"
#include "ridge/plan/search/candidate.h"
#include "ridge/plan/search/recompute.h"

namespace ridge {

// The graphs of a job, by the number of slices in which its batch runs.
class JobGraphs {
 public:
  virtual ~JobGraphs() = default;
  // Those of an update.  Fails with kUnsupported when the batch cannot be sliced so.
  virtual Result<std::vector<NamedGraph>> Training(int64_t slices) = 0;
  // Those that are planned with them and recompute nothing.
  virtual Result<std::vector<NamedGraph>> Evaluation(int64_t slices) = 0;
};

// Of the step's scratch: activations, gradients, workspaces.
struct ScratchBudget {
  double share = 1;           // of what it is when nothing is recomputed
  int64_t bytes = INT64_MAX;  // also at most these
};

struct PlanGoals {
  // Empty: the search chooses.
  std::optional<int64_t> slices = 1;
  std::optional<RecomputeLimits> recompute = RecomputeLimits();
  std::optional<int64_t> loss_chunks = 1;
  int64_t batch = 1;  // a number of slices divides it
  int64_t accumulate = 1;
  int64_t limit_bytes = INT64_MAX;  // of the process, without data
  int64_t recorded_run_bytes = 0;   // of RecordedBytes
  // Values are recomputed, products and convolutions too, until the step is within it.
  std::optional<ScratchBudget> budget = std::nullopt;
  // What rests in the host's memory, behind a link of this rate: above 0 where anything does.
  Offload offload = Offload::kNone;
  double host_link_bytes_per_s = 0;
};

// How every candidate becomes a program.
struct ProgramRecipe {
  std::string model;
  PassSelection passes;
  DType operands = DType::kF32;  // of products
  PlanOptions options;
  bool group_updates = false;  // GraphRewrites
};

struct PlanChoice {
  Program program;
  int64_t slices = 1;
  std::string recompute = "off";  // as PlanCandidate::recompute
  int64_t loss_chunks = 1;
  std::optional<ChunkableLogits> logits = std::nullopt;  // of the step, where they are whole
  bool keeps_many = false;  // many activations, none of which were worth recomputing
  std::map<std::string, std::vector<PassReport>> passes;  // by StepPlan
  std::vector<PlanCandidate> candidates;                  // in the order in which they were planned
};

// A few plans are compared by their bytes and by the seconds of the kernels' nominal device.
// Slices: among the plans that fit the limit, the fewest slices within 5 % of the fastest plan.  If
// the whole batch fits, a number of slices is planned only while it could gain 5 %: even with all
// bytes in a cache, and less the cost of slicing extrapolated from the last plan.
// Loss chunks: where the whole logits do not fit, and where a device's memory is the run's alone
// and the chunks free ten times as large a share of its bytes as they cost of the seconds.
// Recompute: in memory that others share the values that are worth their time (search.cc has the
// limit), elsewhere none; if the whole batch does not fit, as many as are needed, at last those
// that take products and convolutions. Fails with kInvalidArgument when no recomputation keeps the
// budget. Layouts: where a device's memory is the run's alone, a plan whose copies in other layouts
// save a smaller share of the seconds than they cost of the bytes is made in row-major ones.  The
// program's times are those of `measured`.  Deterministic.
Result<PlanChoice> SearchPlan(JobGraphs& graphs, const ProgramRecipe& recipe, KernelQuery& kernels,
                              const CostModel& measured, const PlanGoals& goals);

}  // namespace ridge

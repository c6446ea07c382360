// PlanSummary: the reported facts of a plan, and their JSON (`ridge plan --json`, plan.json).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/plan/cost/times.h"
#include "ridge/plan/hardware/offload.h"
#include "ridge/plan/program.h"
#include "ridge/plan/rate_sources.h"
#include "ridge/plan/search/candidate.h"
#include "ridge/plan/total.h"

namespace ridge {

// In which a step on a device that is not here is expected, and by what.
struct StepRange {
  double low_s = 0, high_s = 0;
  std::string software;  // "torch"
  double scale = 1;      // Software::scale, which is in the seconds
  std::string evidence;
  double peak_flops_per_s = 0;  // of the device's products, as its sheet has it
};

// The steps of a run whose batches have samples of one length each.
struct PlanLength {
  int64_t length = 0;   // tokens of a sample
  int64_t batch = 0;    // samples
  int64_t batches = 0;  // of an epoch; 0: not known without data
  std::string step;     // its StepPlan
  double step_s = 0;
  double modelled_step_s = 0;
};

// What earlier runs on this machine say of a step's seconds.
struct ExpectedStep {
  double step_s = 0;
  std::optional<double> epoch_s;
  double scale = 1, low = 1, high = 1;  // measured over planned seconds of these runs
  int64_t runs = 0;
  std::string model;  // whose runs they were; "" for any
};

// The sums of an update in a type between ranks (--wire), alone.
struct WirePrice {
  std::string wire;
  double busy_s = 0;
  int64_t sent_bytes = 0;  // by this rank
};

// What sums over ranks add to an update.
struct PlanCommunication {
  double busy_s = 0;                  // of the sums
  double exposed_s = 0;               // of these, what no kernel runs beside
  std::string source;                 // "Open MPI 4.1.4, measured 2026-11-26"
  std::vector<WirePrice> wires = {};  // f32 and bf16; of a mesh or GPUs none
};

// Of a device whose memory nobody said: far more than any has.
inline constexpr int64_t kUnknownLimit = int64_t{1} << 60;

// A planned run on one device.  `program` must outlive it.
struct PlanSummary {
  const Program* program = nullptr;
  MemoryEstimate memory;
  int64_t batch = 0;                    // samples a micro-batch
  int64_t accumulate = 1;               // micro-batches an update
  double step_s = 0;                    // one update: all its micro-batches; of several lengths
                                        // the mean over an epoch
  double modelled_step_s = 0;           // the same by the device's rates alone
  std::optional<StepRange> range = {};  // of step_s, where nothing can be measured
  std::optional<double> epoch_s;        // with evaluation, without checkpoints; none without data
  int64_t limit_bytes = 0;              // memory that the run may use, or kUnknownLimit
  bool fits = true;                     // also where that is not known
  int64_t read_workers = 0;             // threads that read samples; 0: they are in memory
  int64_t pipeline_cap_bytes = 0;       // to which their number was fitted; 0: it was given
  std::vector<PlanCandidate> candidates = {};  // the plans that were compared; none: not searched
  std::optional<ExpectedStep> expected = {};   // no number of the plan has its scale in it
  std::vector<PlanLength> lengths = {};        // shortest first; none: all batches are alike
  std::optional<OffloadPlan> offload = {};     // variables that rest in the host's memory
  std::optional<RateSources> rates = {};       // of a CPU that is planned for by its record
  std::optional<PlanCommunication> communication = {};  // of several ranks

  bool knows_limit() const { return limit_bytes != kUnknownLimit; }

  double samples() const;  // of an update; of several lengths the mean over an epoch
  // Of the step.  REQUIRES: communication.
  double exposed_share() const { return step_s > 0 ? communication->exposed_s / step_s : 0; }
};

// Fills all but epoch_s, candidates and expected; `fits` is memory.needed_bytes() <= limit_bytes.
PlanSummary SummarizePlan(const Program& program, MemoryEstimate memory, int64_t batch,
                          int64_t accumulate, int64_t limit_bytes);

// The StepPlans of one update: `train`, or `micro` and `update`; `eval` or `infer` when the program
// trains nothing.
struct UpdatePart {
  const StepPlan* step = nullptr;
  int64_t runs = 1;  // in one update
};
std::vector<UpdatePart> UpdateParts(const Program& program, int64_t accumulate);

// Seconds of one update: those of its parts, as often as they run.
double UpdateSeconds(const Program& program, int64_t accumulate,
                     double (*seconds_of)(const StepPlan&) = PlannedSeconds);

// Work and traffic of one update: of its nodes, as often as they run.
Cost UpdateCost(const Program& program, int64_t accumulate);

// One object with the keys of the command line's contract, without a newline.  Times are seconds,
// sizes bytes.  A node's `s`, `flops` and bytes are those of one execution; it runs `runs` times
// in an update.  `s` and `modelled_s` are within the step; `measured_s` is of the kernel alone,
// null where it was not timed.
std::string PlanToJson(const PlanSummary& plan);

// "[...]" with one object a plan, for several devices.
std::string PlansToJson(const std::vector<PlanSummary>& plans);

}  // namespace ridge

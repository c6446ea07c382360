// How a plan is shown to people: before the run, after it beside the measurement, and in plan.txt.
//
// Bars and tables first, words below.  Every function gives text that ends in a newline and prints
// nothing.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/lower/kernel_query.h"
#include "ridge/plan/plan_json.h"
#include "ridge/report/terminal.h"

namespace ridge {

// Memory by purpose, where the peak is, arena against its lower bound, where the time goes (the
// five longest nodes), step and epoch time, the error of the cost model against what was timed,
// whether it fits.
// `title` says what is planned: "cnn, batch 128, adam, f32, on cpu (2 threads)".
std::string PlanReport(const std::string& title, const PlanSummary& plan, const Terminal& terminal);

// The plans that were compared, by slices and recomputation: bytes and seconds of the nominal
// device, which of them fit and which one was chosen.
std::string CandidatesReport(const PlanSummary& plan, const Terminal& terminal);

// The most that is live forward, backward, in updates and in evaluation, at which node, and the
// largest tensors there.
std::string PhasesReport(const PlanSummary& plan, const Terminal& terminal);

// plan.txt: the report in plain text, then each StepPlan's schedule with offsets, layouts and
// kernels.  `layouts` names the layouts: the backend that the program was planned for.
std::string PlanText(const std::string& title, const PlanSummary& plan, const KernelQuery& layouts);

// What a plan promises and a run measures.
struct RunNumbers {
  int64_t peak_bytes = 0;
  int64_t arena_bytes = 0;
  double step_s = 0;
  std::optional<double> epoch_s;
  std::optional<double> modelled_step_s = {};  // of a plan: by the cost model alone
  std::optional<int64_t> input_bytes = {};
  std::optional<double> communication_s = {};  // of several ranks: in sums over them, a step
  std::optional<double> energy_j = {};         // measured alone
};

// The table "planned against measured" with the error of the plan: (planned - measured) / measured;
// for the step both as promised, with what was timed before the run, and as modelled without.
std::string ComparisonReport(const RunNumbers& planned, const RunNumbers& measured,
                             const Terminal& terminal);

// What the plan of a rank promises, and what it measured.
struct RankNumbers {
  int64_t slices = 0;  // of a batch
  int64_t planned_peak_bytes = 0, peak_bytes = 0;
  int64_t planned_arena_bytes = 0, arena_bytes = 0;
  double planned_step_s = 0, step_s = 0;
  double collective_s = 0;  // in collectives, a step, waiting for other ranks included

  // Of the step: what a rank spends in collectives beyond what moving and adding takes.
  double wait_share(double communication_s) const;
};

// A row a rank: memory and step with their errors, and how long it waits for the others.
// `communication_s`: RunNumbers' of the measurement.
std::string RanksReport(const std::vector<RankNumbers>& ranks, double communication_s,
                        const Terminal& terminal);

// A run that needs less memory.
struct SmallerRun {
  std::string flags;       // "--batch 64 --accumulate 2"
  int64_t peak_bytes = 0;  // what it needs; 0 when it was not planned
  std::string effect;      // "time a sample +4.0 %"; may be empty
};

// Why a run is refused: it does not fit.
struct Refusal {
  std::string device;
  MemoryEstimate memory;  // what the run needs
  int64_t limit_bytes = 0;
  std::string limit_name;  // whose limit it is: "--fit allows"
  std::vector<SmallerRun> smaller = {};
  bool resumed = false;     // the run has begun, so it cannot become smaller
  int64_t used_before = 0;  // on a GPU by others, in both
};

// kOutOfMemory with the need against the limit, the largest values at the peak and what would help.
Status DoesNotFit(const Refusal& refusal);

}  // namespace ridge

// Plans a run without running it: for `ridge plan`, and to suggest smaller runs when one does not
// fit.
#pragma once
#include <optional>
#include <string>

#include "ridge/graph/graph.h"
#include "ridge/report/plan_report.h"
#include "ridge/train/job/job.h"
#include "ridge/train/load/forward.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/store/receipts.h"
#include "ridge/train/store/summary.h"

namespace ridge::cli {

struct PlannedRun {
  std::optional<JobData> data;  // none when no data was given
  PlannedJob job;
  ModelNotes notes;
};

// Checks that the model exists.  Cheap, so that a wrong name is refused before any measurement.
Status CheckModel(const TrainOptions& options);

// Fails as Train() does before its first step, but not when the run does not fit.  A plan that fits
// is rehearsed as in Train(); one that doesn't uses the device profile.
Result<PlannedRun> PlanRun(const TrainOptions& options, const Machine& machine);

// The job with other options, not rehearsed and in the same memory.  Its data is that of `job`, so
// for a smaller batch the sum is no less than the truth.  Fails as PlanRun.
Result<PlannedJob> PlanWith(const TrainOptions& options, const PlannedJob& job,
                            const Machine& machine);

// For another program than ridge, which neither recomputes nor cuts batches unless it is told to.
void LeaveAsWritten(TrainOptions& options);
// For several devices, whose runs do not cut logits unless they are told to.
void LeaveLossWhole(TrainOptions& options);

// The notes on a loaded model, in short or in full; "" for none.
std::string ModelNotesText(const ModelNotes& notes, bool verbose);

// "cnn, batch 128, adam, f32, on cpu (2 threads)"; "its own step" for a model that has one, and
// bf16 for products of bf16.  `program`: the job's, wherever it is by now.
std::string PlanTitle(const PlannedJob& job, const Program& program, const Machine& machine);

// A receipt of the job without its figures and steps.
Receipt ReceiptOf(const PlannedJob& job, const Machine& machine);

// What earlier runs of the kind say of this plan; nothing for a device that is not here, or by too
// few.
std::optional<ExpectedStep> ExpectedStepOf(const PlannedJob& job, const Machine& machine,
                                           const PlanSummary& plan);

// What reports compare of a run's figures.
RunNumbers NumbersOf(const RunFigures& figures);

// Why the job is refused, and which smaller batches would fit (each is planned, which takes a
// moment).  REQUIRES: the job does not fit.
Status ExplainRefusal(const PlannedJob& job, const Machine& machine);

}  // namespace ridge::cli

// Plans a run without running it: for `ridge plan`, and to say what would help one that doesn't
// fit.
#pragma once
#include <optional>
#include <string>

#include "ridge/graph/graph.h"
#include "ridge/report/plan_report.h"
#include "ridge/train/job/job.h"
#include "ridge/train/load/forward.h"
#include "ridge/train/options/machine.h"

namespace ridge::cli {

struct PlannedRun {
  std::optional<JobData> data;  // none when no data was given
  PlannedJob job;
  ModelNotes notes;
};

// Whether there is such a model.  Cheap, so that a wrong name is told before anything is measured.
Status CheckModel(const TrainOptions& options);

// Fails as Train() does before its first step, but not when the run does not fit.  A plan that fits
// is rehearsed as Train() does it; one that doesn't rests on the device profile.
Result<PlannedRun> PlanRun(const TrainOptions& options, const Machine& machine);

// What loading an ONNX file found: in short, or each note and each name.  "" when there is nothing.
std::string ModelNotesText(const ModelNotes& notes, bool verbose);

// "cnn, batch 128, adam, f32, on cpu (2 threads)"; "its own step" for a model that brings one, and
// bf16 where products read that.
std::string PlanTitle(const PlannedJob& job, const Machine& machine);

// Why the job is refused, and which smaller batches would fit (planned anew, so this takes a
// moment).  REQUIRES: it does not fit.
Status ExplainRefusal(const PlannedJob& job, const Machine& machine);

}  // namespace ridge::cli

// RunSummary: summary.json, the result of a completed run, with planned and measured figures.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/device_bytes.h"
#include "ridge/core/status.h"
#include "ridge/observe/evaluation_record.h"
#include "ridge/observe/loss_scaling.h"
#include "ridge/report/plan_report.h"

namespace ridge {

// The result of one pass over a data set, each sample counted once.
struct EvalResult {
  int64_t samples = 0;
  double loss = 0;                 // mean over the samples, or over the labels that count
  std::optional<double> accuracy;  // empty unless a classifier
  double seconds = 0;
  NamedMetrics metrics = {};  // beside both: "f1_macro"
};

struct RunFigures {
  int64_t peak_bytes = 0;
  int64_t arena_bytes = 0;
  double step_s = 0;
  std::optional<double> epoch_s;               // empty when no epoch was completed
  std::optional<double> modelled_step_s = {};  // of a plan: by the device's rates alone
  // Slots, data, and the buffers and threads of the pipelines; empty without data, or in old runs.
  std::optional<int64_t> input_bytes = {};
  // Of several ranks: in sums over them, a step.  Measured at the rank that waits for no other.
  std::optional<double> communication_s = {};
  // Measured: of a device that tells it, in all updates, evaluations and checkpoints of the
  // process.
  std::optional<double> energy_j = {};
};

// A run that ended by --patience.
struct EarlyStop {
  int64_t evaluations = 0;  // since the best one, on the validation set
  std::string metric;       // "accuracy" or "loss"
  double best = 0;
  int64_t best_step = 0;
};

struct RunSummary {
  std::string model;
  uint64_t seed = 0;
  int64_t steps = 0;
  int64_t epochs = 0;  // completed
  // Of the test set; empty without one, or unless a classifier.
  std::optional<double> test_accuracy;
  std::optional<double> validation_accuracy, validation_loss;
  // Of the final evaluation on the test set, else on the validation set, else of the last training
  // steps.
  double loss = 0;
  std::string evaluated_on = "training";  // the data of `loss`: "test", "validation", "training"
  NamedMetrics metrics;  // of the final evaluations, with their data: "test/f1_macro"
  double wall_s = 0;
  RunFigures planned, measured;
  int64_t skipped_samples = 0;  // per epoch
  std::optional<LossScaling> loss_scaling = {};
  std::string parameters_sha256;
  std::string ridge_version;
  std::string device;
  std::vector<std::string> libraries = {}, library_paths = {};  // those of Machine
  int64_t threads = 0;
  std::optional<EarlyStop> stopped_early;
  std::vector<RankNumbers> ranks;                // of several
  std::optional<DeviceBytes> device_bytes = {};  // of a device with a memory of its own

  // Adds the final evaluation of a data set, "validation" or "test".
  void Add(const std::string& data, const EvalResult& evaluation);
};

std::string SummaryToJson(const RunSummary& summary);
// Keys that older versions lack are as in an empty summary.  Fails with kInvalidData.
Result<RunSummary> SummaryFromJson(const std::string& text, const std::string& file);

// {"peak_bytes": .., "arena_bytes": .., "step_s": .., "epoch_s": ..}, and "modelled_step_s" of a
// plan; null for what is not known.  "input_bytes" where there are any.
nlohmann::ordered_json FiguresToJson(const RunFigures& figures);

}  // namespace ridge

// CheckpointState: state.json of a checkpoint: the position of the run, and its configuration.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/safetensors.h"
#include "ridge/core/status.h"
#include "ridge/data/stage.h"
#include "ridge/observe/metrics.h"
#include "ridge/train/options/schedules/schedule.h"
#include "ridge/train/store/data_digest.h"
#include "ridge/train/store/metrics_window.h"

namespace ridge {

// The best of the scheduled checkpoints so far.
struct BestResult {
  // "accuracy" (higher is better), "wer", "cer" or "loss" of the validation set; without one
  // "training_loss", the mean since the previous checkpoint.
  std::string metric;
  double value = 0;
  int64_t step = 0;
  bool operator==(const BestResult&) const = default;
};

struct LossSum {
  int64_t steps = 0;
  double loss_sum = 0;
  bool operator==(const LossSum&) const = default;
};

struct CheckpointState {
  int64_t step = 0;   // updates done
  Position position;  // of the data: everything before is consumed
  uint64_t seed = 0;
  ScheduleOptions schedule;
  std::optional<BestResult> best;
  MetricsWindow window;      // sums since the last report, so that a resumed run reports the same
  LossSum since_checkpoint;  // since the last scheduled one
  // Of the evaluations on the validation set, those without a checkpoint too.
  std::optional<BestResult> best_evaluation;
  int64_t evaluations_since_best = 0;
  // Set when the evaluation at this step is pending: its report in metrics.jsonl so far.
  std::optional<MetricsReport> owed_evaluation;
  double wall_s = 0;  // of all processes so far
  std::string model;
  std::string options_json;    // options.json's content
  std::string kernels_sha256;  // of the plan's kernel choices
  DataDigest data;             // empty in checkpoints of versions without it
  std::string cpu;             // DeviceProfile::id
  // Machine::libraries; empty in checkpoints of versions without it.
  std::vector<std::string> libraries;
  int64_t threads = 0;
  std::string ridge_version;
  FileDigest parameters, state;  // of the two other files
};

// One JSON object; its last key is a CRC-32C of the rest.
std::string CheckpointStateToJson(const CheckpointState& state);
// Fails with kInvalidData: not JSON, a key missing, or changed since it was written.
Result<CheckpointState> CheckpointStateFromJson(const std::string& text, const std::string& file);

}  // namespace ridge

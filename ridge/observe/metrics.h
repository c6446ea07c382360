// MetricsWriter: metrics.jsonl of a run folder, one JSON object a line, one line a report.
//
//   {"step":100,"epoch":1,"loss":0.53,"accuracy":0.81,"lr":0.001,"samples_s":51200.0,
//    "input_wait":0.01,"step_s":0.0025}
//
// A number that is not finite is null; the loss then also comes as "loss_text" ("nan", "inf",
// "-inf").  A line is written at once and synced by Close().  Not thread-safe.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "ridge/core/device_counters.h"
#include "ridge/core/output_file.h"
#include "ridge/core/stage_times.h"
#include "ridge/core/status.h"
#include "ridge/observe/evaluation_record.h"
#include "ridge/observe/loss_scaling.h"

namespace ridge {

struct MetricsReport {
  int64_t step = 0;                // updates done
  int64_t epoch = 0;               // from 1
  double loss = 0;                 // mean over the steps since the last report
  std::optional<double> accuracy;  // null unless classification
  double lr = 0;
  double samples_s = 0;
  double input_wait = 0;  // 0 to 1: part of the time that the step waited for data
  // "input_stages":{"read":0.01,"decode":0.8}: shares of the time of reading; zeros: not there.
  StageSeconds input_stages = {};
  double step_s = 0;        // median
  DeviceCounters gpu = {};  // "gpu":{"utilization":0.97,"power_w":412}; empty: not there
  // "loss_scale":32768,"skipped_steps":0, only with a loss scale.
  std::optional<LossScaling> loss_scaling = {};
  // Of an evaluation, only in a line after one: keys `validation_loss` and `validation_accuracy`,
  // or, of the test set, `test_loss` and `test_accuracy`.
  std::string evaluated_on = "validation";
  std::optional<double> evaluation_loss;
  std::optional<double> evaluation_accuracy;
  NamedMetrics evaluation_metrics = {};  // `validation_f1_macro`
};

// ,"input_stages":{...}, or nothing when all are zero.
std::string InputStagesJson(const StageSeconds& stages);

// ,"gpu":{...} with what is known, or nothing.
std::string CountersJson(const DeviceCounters& gpu);

// Without the newline.
std::string MetricsLine(const MetricsReport& report);
// The report of such a line; nothing when it is none.
std::optional<MetricsReport> ParseMetricsLine(const std::string& line);

class MetricsWriter {
 public:
  // A new run: PATH is emptied.  Fails with kUnavailable.
  static Result<MetricsWriter> Create(const std::string& path);

  // A run that goes on after `resumed_step`: lines of later steps are cut off, and so is a last
  // line that a crash left without its end, and, where the evaluation at that step is still to be
  // made, the line of one.  A missing file is made.  Fails with kUnavailable.
  static Result<MetricsWriter> Resume(const std::string& path, int64_t resumed_step,
                                      bool evaluation_owed = false);

  Status Add(const MetricsReport& report);
  Status Close();

 private:
  explicit MetricsWriter(OutputFile file) : file_(std::move(file)) {}

  OutputFile file_;
};

}  // namespace ridge

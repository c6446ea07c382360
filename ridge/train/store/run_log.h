// RunLog: the files that a run appends to: metrics.jsonl, layers.jsonl, TensorBoard events,
// trace.json.
//
// A file that can't be written causes one warning, and the run continues without it.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/observe/evaluation_record.h"
#include "ridge/observe/event_writer.h"
#include "ridge/observe/metrics.h"
#include "ridge/observe/trace.h"
#include "ridge/runtime/executor.h"
#include "ridge/train/store/bad_records_file.h"
#include "ridge/train/store/layer_norms.h"
#include "ridge/train/store/run_folder.h"

namespace ridge {

class RunLog {
 public:
  using WarnSink = std::function<void(const std::string&)>;

  struct Resumed {
    int64_t step = 0;              // lines and events of later steps are dropped
    bool evaluation_owed = false;  // so is the evaluation at that step
  };
  RunLog(const RunFolder& folder, const std::optional<Resumed>& resumed, bool trace, WarnSink warn);
  // Writes nothing: of a rank that does not lead.
  RunLog() = default;

  // Keeps bad_records.jsonl: written by AddReport, AddEvaluation and Close when there are more.
  void KeepBadRecords(BadRecordsPtr bad_records);

  void AddReport(const MetricsReport& report);
  void AddEvaluation(const MetricsReport& report);  // with evaluation_loss set

  // For TensorBoard alone.
  void AddGraph(const Graph& graph);
  // The confusion matrix, and the samples that it got wrong most confidently.
  void AddPictures(const EvaluationRecord& record);
  void AddHyperparameters(const std::vector<Hyperparameter>& hyperparameters);
  void AddHistogram(const std::string& tag, int64_t step, std::span<const double> numbers);
  void AddEnd(bool succeeded);

  void AddLayers(const LayerReport& report);  // to layers.jsonl

  bool tracing() const { return trace_ != nullptr; }
  // Adds the nodes of an execution that began at `start_s`, and the copy of its batch where that
  // crossed beside a step.
  void TraceStep(const Executor& executor, int step, int slot, double start_s);
  void TraceSpanOf(const std::string& name, double start_s, double duration_s);

  void Warn(const Status& status);  // a repeated error once, unless ok
  void Flush();
  void Close();

 private:
  void OpenTrace(const std::string& path);
  void TraceCopy(const Executor& executor, int step, int slot, double start_s);
  void WriteNewBadRecords();
  void AddCounters(const MetricsReport& report);
  void AddLossScaling(const MetricsReport& report);

  WarnSink warn_;
  std::optional<MetricsWriter> metrics_;
  std::unique_ptr<EventWriter> events_;
  std::unique_ptr<TraceWriter> trace_;
  bool traces_copies_ = false;
  std::string last_warning_;
  const std::string bad_records_path_, layers_path_;
  BadRecordsPtr bad_records_;  // or null
  int64_t bad_records_written_ = 0;
};

}  // namespace ridge

#include "ridge/train/store/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "ridge/data/image/encode.h"
#include "ridge/plan/cost/times.h"
#include "ridge/train/store/evaluation_pictures.h"
#include "ridge/train/store/graph_nodes.h"

namespace ridge {
namespace {

constexpr size_t kMostWrong = 8;  // pictures of an evaluation

constexpr TraceTrack kNodes = {0, 1};
constexpr TraceTrack kLoop = {0, 0};
constexpr TraceTrack kCopies = {0, 2};

}  // namespace

RunLog::RunLog(const RunFolder& folder, const std::optional<Resumed>& resumed, bool trace,
               WarnSink warn)
    : warn_(std::move(warn)),
      bad_records_path_(folder.File(kBadRecordsFile)),
      layers_path_(folder.File(kLayersFile)) {
  const std::string path = folder.File("metrics.jsonl");
  Result<MetricsWriter> metrics =
      resumed ? MetricsWriter::Resume(path, resumed->step, resumed->evaluation_owed)
              : MetricsWriter::Create(path);
  Warn(metrics.status());
  if (metrics.ok()) metrics_.emplace(std::move(*metrics));
  EventWriterOptions options;
  if (resumed) options.resumed_step = resumed->step;
  Result<std::unique_ptr<EventWriter>> events = EventWriter::Create(folder.path(), options);
  Warn(events.status());
  if (events.ok()) events_ = std::move(*events);
  if (trace) OpenTrace(folder.File("trace.json"));
}

void RunLog::OpenTrace(const std::string& path) {
  Result<std::unique_ptr<TraceWriter>> trace = TraceWriter::Create(path);
  Warn(trace.status());
  if (!trace.ok()) return;
  trace_ = std::move(*trace);
  Warn(trace_->NameProcess(0, "ridge"));
  Warn(trace_->NameThread(kLoop, "training loop", 0));
  Warn(trace_->NameThread(kNodes, "nodes", 1));
}

void RunLog::Warn(const Status& status) {
  if (status.ok() || status.message() == last_warning_) return;
  last_warning_ = status.message();
  if (warn_) warn_(status.message());
}

void RunLog::KeepBadRecords(BadRecordsPtr bad_records) {
  bad_records_ = std::move(bad_records);
  WriteNewBadRecords();
}

void RunLog::WriteNewBadRecords() {
  if (bad_records_ == nullptr || bad_records_path_.empty() ||
      bad_records_->count() == bad_records_written_)
    return;
  const std::vector<BadRecord> records = bad_records_->List();
  Warn(WriteBadRecords(bad_records_path_, records));
  bad_records_written_ = static_cast<int64_t>(records.size());
}

void RunLog::AddReport(const MetricsReport& report) {
  WriteNewBadRecords();
  if (metrics_) Warn(metrics_->Add(report));
  if (events_ == nullptr) return;
  const std::array<ScalarValue, 3> values = {
      ScalarValue{"train/loss", report.loss}, ScalarValue{"train/lr", report.lr},
      ScalarValue{"train/accuracy", report.accuracy.value_or(0)}};
  Warn(events_->AddScalars(report.step, std::span(values).first(report.accuracy ? 3 : 2)));
  AddCounters(report);
  AddLossScaling(report);
}

void RunLog::AddCounters(const MetricsReport& report) {
  for (const CounterField& field : kCounterFields) {
    const std::optional<double>& value = report.gpu.*field.value;
    if (value) Warn(events_->AddScalar(std::string("gpu/") + field.name, report.step, *value));
  }
}

void RunLog::AddLossScaling(const MetricsReport& report) {
  if (!report.loss_scaling) return;
  const auto skipped = static_cast<double>(report.loss_scaling->skipped_steps);
  const std::array<ScalarValue, 2> scaling = {
      ScalarValue{"train/loss_scale", report.loss_scaling->scale},
      ScalarValue{"train/skipped_steps", skipped}};
  Warn(events_->AddScalars(report.step, scaling));
}

void RunLog::AddLayers(const LayerReport& report) {
  if (layers_path_.empty()) return;
  std::ofstream file(layers_path_, std::ios::app);
  file << LayerReportLine(report) << std::flush;
  if (!file) Warn(Status(ErrorCode::kUnavailable, layers_path_ + ": cannot be written"));
}

// Every evaluation during training has the tag `validation`, so that charts of runs with and
// without a validation set overlap; one on the test set also has the tag `test`.
void RunLog::AddEvaluation(const MetricsReport& report) {
  WriteNewBadRecords();
  if (metrics_) Warn(metrics_->Add(report));
  if (events_ == nullptr) return;
  for (const std::string tag : {"validation", "test"}) {
    if (tag != "validation" && tag != report.evaluated_on) continue;
    const std::string loss = tag + "/loss", accuracy = tag + "/accuracy";
    const std::array<ScalarValue, 2> values = {
        ScalarValue{loss, report.evaluation_loss.value_or(0)},
        ScalarValue{accuracy, report.evaluation_accuracy.value_or(0)}};
    Warn(events_->AddScalars(report.step,
                             std::span(values).first(report.evaluation_accuracy ? 2 : 1)));
    for (const auto& [name, value] : report.evaluation_metrics)
      Warn(events_->AddScalar(tag + "/" + name, report.step, value));
  }
}

void RunLog::AddHyperparameters(const std::vector<Hyperparameter>& hyperparameters) {
  if (events_ != nullptr) Warn(events_->AddSessionStart(hyperparameters));
}

void RunLog::AddGraph(const Graph& graph) {
  if (events_ != nullptr) Warn(events_->AddGraph(GraphNodes(graph)));
}

void RunLog::AddPictures(const EvaluationRecord& record) {
  if (events_ == nullptr) return;
  const auto add = [&](const std::string& tag, const RgbPicture& picture) {
    const ImageSize& size = picture.size;
    Warn(events_->AddPicture(tag, record.step, {size.height, size.width, EncodePng(picture)}));
  };
  if (const auto matrix = ConfusionPicture(record)) add(record.data + "/confusion", *matrix);
  for (size_t i = 0; i < std::min(record.wrong.size(), kMostWrong); ++i) {
    const WrongRecord& wrong = record.wrong[i];
    if (!wrong.picture) continue;
    add(fmt::format("{}/wrong {}: {}, said {}", record.data, i + 1, wrong.label, wrong.said),
        ToRgb(*wrong.picture));
  }
}

void RunLog::AddHistogram(const std::string& tag, int64_t step, std::span<const double> numbers) {
  if (events_ != nullptr) Warn(events_->AddHistogram(tag, step, HistogramOf(numbers)));
}

void RunLog::AddEnd(bool succeeded) {
  if (events_ != nullptr) Warn(events_->AddSessionEnd(succeeded));
}

void RunLog::TraceStep(const Executor& executor, int step, int slot, double start_s) {
  if (trace_ == nullptr) return;
  TraceCopy(executor, step, slot, start_s);
  const StepPlan& plan = executor.program().steps[static_cast<size_t>(step)];
  const std::vector<double>& seconds = executor.NodeSeconds(step);
  const std::vector<double> planned = PlannedNodeSeconds(plan);
  double at = start_s;
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    const PlannedNode& node = plan.nodes[n];
    const std::array<TraceArg, 3> args = {TraceArg{"kernel", std::string_view(node.choice.kernel)},
                                          TraceArg{"planned_s", planned[n]},
                                          TraceArg{"flops", node.cost.flops}};
    Warn(trace_->AddSpan({node.name, node.op, kNodes, at, seconds[n], args}));
    at += seconds[n];
  }
}

void RunLog::TraceCopy(const Executor& executor, int step, int slot, double start_s) {
  const std::optional<Transfers::Crossing> copy = executor.transfers().CrossingOf(step, slot);
  if (!copy) return;
  if (!traces_copies_) Warn(trace_->NameThread(kCopies, "copies", 2));
  traces_copies_ = true;
  const std::array<TraceArg, 1> args = {TraceArg{"bytes", copy->bytes}};
  const double at = start_s + copy->begin_s - executor.BeganSeconds(step);
  Warn(trace_->AddSpan({"batch", "upload", kCopies, at, copy->end_s - copy->begin_s, args}));
}

void RunLog::TraceSpanOf(const std::string& name, double start_s, double duration_s) {
  if (trace_ != nullptr) Warn(trace_->AddSpan({name, "loop", kLoop, start_s, duration_s, {}}));
}

void RunLog::Flush() {
  if (events_ != nullptr) Warn(events_->Flush());
}

void RunLog::Close() {
  WriteNewBadRecords();
  if (metrics_) Warn(metrics_->Close());
  if (events_ != nullptr) Warn(events_->Close());
  if (trace_ != nullptr) Warn(trace_->Close());
  metrics_.reset();
  events_.reset();
  trace_.reset();
}

}  // namespace ridge

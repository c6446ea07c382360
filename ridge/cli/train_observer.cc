#include "ridge/cli/train_observer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ridge/cli/output.h"
#include "ridge/cli/planning.h"
#include "ridge/core/process.h"
#include "ridge/core/rounding.h"
#include "ridge/core/units.h"
#include "ridge/observe/metric_names.h"
#include "ridge/report/device_bytes_report.h"
#include "ridge/report/plan_report.h"
#include "ridge/report/table.h"

namespace ridge::cli {
namespace {

ProgressOptions RedrawOptions() {
  ProgressOptions options;
  options.columns = [] { return TerminalColumns(stderr); };
  return options;
}

std::string PassesText(const PlannedJob& job) {
  std::string text;
  for (const auto& [step, reports] : job.passes) {
    for (const PassReport& report : reports) {
      if (report.before.nodes == report.after.nodes) continue;
      text += fmt::format("  {:<7} {:<8} {} -> {} nodes, {} -> {} of results\n", step, report.name,
                          report.before.nodes, report.after.nodes,
                          FormatBytes(report.before.result_bytes),
                          FormatBytes(report.after.result_bytes));
    }
  }
  return text.empty() ? "" : "\nPasses\n" + text;
}

}  // namespace

std::string EvaluationLine(const MetricsReport& report) {
  std::string line =
      fmt::format("epoch {}, step {}: {}", report.epoch, report.step, report.evaluated_on);
  if (report.evaluation_accuracy)
    line += fmt::format(" accuracy {},", FormatPercent(*report.evaluation_accuracy));
  if (const auto wer = FindMetric(report.evaluation_metrics, "wer"))
    line += fmt::format(" {},", MetricText("wer", *wer));
  return line + fmt::format(" loss {:.4f}", report.evaluation_loss.value_or(0));
}

// The metric beside the accuracy that `best` goes by, as in "mAP50-95 41.2 %, ".
std::string JudgedText(const RunSummary& summary) {
  for (const char* name : {"map50_95", "mean_iou", "wer"}) {
    for (const auto& [metric, value] : summary.metrics) {
      if (metric == summary.evaluated_on + "/" + name)
        return summary.evaluated_on + " " + MetricText(name, value) + ", ";
    }
  }
  return "";
}

std::string ResultLine(const RunSummary& summary) {
  const bool test = summary.evaluated_on == "test";
  const auto& accuracy = test ? summary.test_accuracy : summary.validation_accuracy;
  std::string line;
  if (accuracy)
    line = fmt::format("{} accuracy {}, ", summary.evaluated_on, FormatPercent(*accuracy));
  return line + JudgedText(summary) +
         fmt::format("loss {:.4g} after {} steps in {}", summary.loss, summary.steps,
                     FormatSeconds(summary.wall_s));
}

std::string EarlyStopLine(const RunSummary& summary) {
  if (!summary.stopped_early) return "";
  const EarlyStop& stop = *summary.stopped_early;
  return fmt::format("stopped early: validation {} was best at step {}, {}; no better one in {}\n",
                     MetricTitle(stop.metric), stop.best_step,
                     MetricValueText(stop.metric, stop.best),
                     FormatCountOf(stop.evaluations, "evaluation"));
}

// "3 of 100 updates skipped, whose gradients overflowed f16; the loss scale is 4096"
std::string LossScaleLine(const RunSummary& summary) {
  if (!summary.loss_scaling) return "";
  const LossScaling& scaling = *summary.loss_scaling;
  return fmt::format(
      "{} of {} updates skipped{}; the loss scale is {}\n", scaling.skipped_steps, summary.steps,
      scaling.skipped_steps > 0 ? ", whose gradients overflowed f16" : "", scaling.scale);
}

CommandLineObserver::CommandLineObserver(const Options& options, const Machine& machine)
    : options_(options),
      machine_(machine),
      progress_(options.quiet ? ProgressMode::kNone : options.progress, options.err, SinkTo(stderr),
                RedrawOptions()) {}

void CommandLineObserver::Say(const std::string& line) {
  if (!options_.quiet) progress_.Print(line);
}

void CommandLineObserver::OnModel(const ModelNotes& notes) {
  const std::string text = ModelNotesText(notes, options_.verbose);
  if (!text.empty()) Say(text);
}

std::string CommandLineObserver::OnPlanned(const PlannedJob& job, const PlanSummary& summary) {
  const std::string title = PlanTitle(job, *summary.program, machine_);
  receipt_ = ReceiptOf(job, machine_);
  if (!options_.quiet) {
    PlanSummary shown = summary;
    if (options_.receipts) shown.expected = ExpectedStepOf(job, machine_, summary);
    PrintData(PlanReport(title, shown, options_.out));
    if (options_.verbose) PrintData(PassesText(job));
    PrintData("\n");
    (void)FinishOutput();  // in order with what goes to stderr; an error shows at the end
  }
  return PlanText(title, summary, *machine_.backend);
}

Status CommandLineObserver::OnRefused(const PlannedJob& job) {
  return ExplainRefusal(job, machine_);
}

void CommandLineObserver::OnStart(const RunStart& start) {
  start_ = start;
  if (start.resumed) {
    Say(fmt::format("{}: resuming at step {} of {}", start.folder, start.step, start.total_steps));
  } else {
    Say(fmt::format("{}: {} steps, {} an epoch", start.folder, start.total_steps,
                    start.steps_per_epoch));
  }
  if (start.total_steps_before > 0) {
    Say(fmt::format("the run was planned for {} steps; it goes on to {}", start.total_steps_before,
                    start.total_steps));
  }
  if (start.lr != start.lr_before) {
    Say(
        fmt::format("the schedule is that of {} steps now: the learning rate goes on at {:.3g} "
                    "(it was {:.3g} here)",
                    start.total_steps, start.lr, start.lr_before));
  }
  if (!start.weights_of.empty())
    Say(fmt::format("starts with the weights of {}; optimizer and steps begin anew",
                    start.weights_of));
  if (start.dropped_per_epoch > 0) {
    const bool one = start.dropped_per_epoch == 1;
    Say(fmt::format("{} sample{} of each epoch {} not fill a batch and {} left out, {} each time",
                    start.dropped_per_epoch, one ? "" : "s", one ? "does" : "do",
                    one ? "is" : "are", one ? "another one" : "other ones"));
  }
}

void CommandLineObserver::OnStep(const StepReport& report) {
  ProgressReport shown;
  shown.epoch = report.epoch;
  shown.epochs =
      start_.steps_per_epoch > 0 ? CeilDiv(start_.total_steps, start_.steps_per_epoch) : 0;
  if (shown.epoch > shown.epochs) shown.epochs = 0;  // resumed on data of another size
  shown.step = report.step;
  shown.steps = start_.total_steps;
  shown.loss = report.loss;
  shown.accuracy = report.accuracy;
  shown.samples_s = report.samples_s;
  shown.input_wait = report.input_wait;
  shown.input_stages = report.input_stages;
  shown.gpu = report.gpu;
  shown.eta_s = report.eta_s;
  shown.bad_records = report.bad_records;
  shown.communication = report.communication;
  shown.slowest_rank = report.slowest_rank;
  progress_.Update(shown, MonotonicSeconds());
}

void CommandLineObserver::OnEvaluation(const EvaluationReport& report) {
  MetricsReport shown;
  shown.epoch = report.epoch;
  shown.step = report.step;
  shown.evaluated_on = report.data;
  shown.evaluation_loss = report.result.loss;
  shown.evaluation_accuracy = report.result.accuracy;
  Say(EvaluationLine(shown) + fmt::format(" ({} samples in {})",
                                          FormatCount(static_cast<double>(report.result.samples)),
                                          FormatSeconds(report.result.seconds)));
}

void CommandLineObserver::OnCheckpoint(int64_t /*step*/, const std::string& path) {
  if (options_.verbose) Say("checkpoint " + path);
}

// "step 250: ranks computed 4, 4 slices, the slowest in 3.10 ms; 6, 2 should take 1.60 ms"
void CommandLineObserver::OnShares(const SharesReport& report) {
  Say(fmt::format("step {}: ranks computed {} slices, the slowest in {}; {} should take {}",
                  report.step, fmt::join(report.slices_before, ", "),
                  FormatSeconds(report.slowest_before_s), fmt::join(report.slices, ", "),
                  FormatSeconds(report.slowest_s)));
}

// Shown when quiet too.
void CommandLineObserver::OnWarning(const std::string& text) {
  progress_.Print("ridge: warning: " + text);
}

// A history that cannot be written is no error of the run.
void CommandLineObserver::KeepReceipt(const RunSummary& summary) {
  if (!options_.receipts) return;
  receipt_.steps = summary.steps;
  receipt_.planned = summary.planned;
  receipt_.measured = summary.measured;
  const Status kept = AddReceipt(receipt_);
  if (!kept.ok() && options_.verbose) OnWarning("no receipt: " + kept.message());
}

void CommandLineObserver::OnFinish(const RunSummary& summary) {
  progress_.Finish();
  KeepReceipt(summary);
  if (options_.quiet) return;
  PrintData("\n" + ComparisonReport(NumbersOf(summary.planned), NumbersOf(summary.measured),
                                    options_.out));
  if (summary.device_bytes)
    PrintData("\n" + DeviceBytesReport(*summary.device_bytes, options_.out));
  if (!summary.ranks.empty()) {
    PrintData("\n" + RanksReport(summary.ranks, summary.measured.communication_s.value_or(0),
                                 options_.out));
  }
  PrintData(fmt::format("\n{}\n{}{}run folder {}\n", ResultLine(summary), EarlyStopLine(summary),
                        LossScaleLine(summary), start_.folder));
}

}  // namespace ridge::cli

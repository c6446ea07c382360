#include "ridge/cli/find_rate.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/output.h"
#include "ridge/core/scratch_folder.h"
#include "ridge/report/line_chart.h"
#include "ridge/use/rate_finder.h"

namespace ridge::cli {
namespace {

constexpr int64_t kUpdates = 100;

class RateObserver : public TrainObserver {
 public:
  explicit RateObserver(bool quiet) : quiet_(quiet) {}

  void OnStep(const StepReport& report) override {
    points.push_back({report.lr, report.step_loss});
    constexpr int64_t kEvery = 25;
    if (report.step % kEvery == 0)
      SayUnless(quiet_)(fmt::format("step {}: learning rate {:.1e}, loss {:.4f}", report.step,
                                    report.lr, report.step_loss));
  }
  void OnWarning(const std::string& text) override { PrintWarning(text); }

  std::vector<RatePoint> points;

 private:
  const bool quiet_;
};

TrainRequest ShortTraining(const TrainRequest& given, const std::string& folder) {
  TrainRequest request = given;
  TrainOptions& options = request.options;
  options.out = folder;
  options.steps = options.steps.value_or(kUpdates);
  options.epochs.reset();
  options.schedule = "ramp";
  options.warmup = 0;
  options.lr = 1;
  options.patience = 0;
  return request;
}

std::string CurveText(const RateFinding& finding, const Terminal& terminal) {
  ChartLine line = {"moving average", {}};
  for (const RatePoint& point : finding.smoothed)
    line.points.emplace_back(std::log10(point.lr), point.loss);
  return LineChartText({"loss", "log10 of the learning rate", {line}}, terminal);
}

std::string FindingText(const RateFinding& finding) {
  std::string text = fmt::format("  steepest at {:.1e}, lowest at {:.1e}{}\n", finding.steepest_lr,
                                 finding.lowest_lr, finding.diverged ? ", diverges above" : "");
  return text + fmt::format("  --lr {:.1e}\n", finding.suggested_lr);
}

std::string FindingJson(const std::vector<RatePoint>& points, const RateFinding& finding) {
  nlohmann::ordered_json json = {{"suggested_lr", finding.suggested_lr},
                                 {"steepest_lr", finding.steepest_lr},
                                 {"lowest_lr", finding.lowest_lr},
                                 {"diverged", finding.diverged}};
  json["points"] = nlohmann::ordered_json::array();
  for (const RatePoint& point : points)
    json["points"].push_back({{"lr", point.lr}, {"loss", point.loss}});
  return json.dump(1) + "\n";
}

}  // namespace

Result<int> RunFindRate(const TrainRequest& given, const Machine& machine,
                        const OutputFlags& output, bool json) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, output));
  RIDGE_ASSIGN_OR_RETURN(const ScratchFolder folder, ScratchFolder::Make("find-lr"));
  RateObserver observer(output.quiet || json);
  const Result<TrainOutcome> outcome =
      Train(ShortTraining(given, folder.path()), machine, observer);
  if (outcome.ok() && outcome->end == RunEnd::kPreempted) return kExitInterrupted;
  const bool too_fast = outcome.status().code() == ErrorCode::kFailed && !observer.points.empty();
  if (!outcome.ok() && !too_fast) return outcome.status();
  RIDGE_ASSIGN_OR_RETURN(const RateFinding finding, FindRate(observer.points));
  PrintData(json ? FindingJson(observer.points, finding)
                 : CurveText(finding, terminal) + FindingText(finding));
  return kExitOk;
}

}  // namespace ridge::cli

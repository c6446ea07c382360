#include "ridge/train/job/calibration.h"

#include <algorithm>

#include "ridge/core/median.h"
#include "ridge/core/process.h"
#include "ridge/train/job/step_runner.h"

namespace ridge {
namespace {

constexpr double kLeastFit = 0.15;  // updates per budget: a long one may take 2 s
constexpr int kMostWarmUps = 2, kFewest = 5, kMost = 400;  // where the budget allows
constexpr double kForMore = 1.0 / 3;  // share of the budget for more updates than kFewest
constexpr double kAgree = 0.05;       // updates that differ by more take all of the budget

// More lanes were no faster on an H200, and their graphs take more memory.
constexpr int kLanes = 2;
constexpr double kWorthLanes = 0.99;  // of the time of one lane

// Whether the middle half of the times agree.  Where the loader of a large batch waits for a core,
// updates differ by whole time slices of the scheduler.
bool Agree(const std::vector<double>& seconds) {
  return LowerQuantile(seconds, 0.75) <= (1 + kAgree) * LowerQuantile(seconds, 0.25);
}

}  // namespace

Result<double> TimeRecordedUpdates(Executor& executor, const PlannedJob& job, double budget_s) {
  StepRunner runner(executor, job);
  std::vector<double> seconds;
  const double begin = MonotonicSeconds();
  for (int i = 0; i < kMost; ++i) {
    const Result<StepRunner::Update> update = runner.Run({.lr = 0, .updates = i});
    if (update.status().code() == ErrorCode::kFailed) return 0.0;
    if (!update.ok()) return update.status();
    seconds.push_back(update->seconds);
    if (MonotonicSeconds() - begin + update->seconds > budget_s) break;
  }
  return LowerQuantile(std::move(seconds), 0.5);
}

Result<double> ChooseLanes(Executor& executor, const PlannedJob& job, double budget_s) {
  RIDGE_ASSIGN_OR_RETURN(const double one_s, TimeRecordedUpdates(executor, job, budget_s / 2));
  if (one_s == 0) return 0.0;
  executor.SetLanes(kLanes);
  RIDGE_ASSIGN_OR_RETURN(const double lanes_s, TimeRecordedUpdates(executor, job, budget_s / 2));
  if (lanes_s > 0 && lanes_s < kWorthLanes * one_s) return lanes_s;
  executor.SetLanes(1);
  return one_s;
}

Result<double> MeasureUpdates(Executor& executor, const PlannedJob& job, const JobData& data,
                              double budget_s) {
  const double planned = MeanUpdateSeconds(job, executor.program());
  const double fit = planned > 0 ? budget_s / planned : 0;
  if (fit < kLeastFit) return 1.0;
  const int warm_ups = fit < 2 ? 0 : fit < kMostWarmUps + kFewest ? 1 : kMostWarmUps;
  StepRunner runner(executor, job);
  RIDGE_RETURN_IF_ERROR(runner.StartLoader(data));
  std::vector<double> seconds;
  const double begin = MonotonicSeconds();
  for (int i = 0; i < warm_ups + kMost; ++i) {
    const Result<StepRunner::Update> update = runner.Run({.lr = 0});
    if (update.status().code() == ErrorCode::kFailed) return 1.0;  // the run reports it
    if (!update.ok()) return update.status();
    // As long as a mean update would have taken.
    const double form_s = FormSeconds(job, executor.program(), update->form);
    if (i >= warm_ups) seconds.push_back(update->seconds * planned / form_s);
    const double spent = MonotonicSeconds() - begin;
    const bool enough = seconds.size() >= kFewest && spent > kForMore * budget_s;
    if (enough && Agree(seconds)) break;
    if (!seconds.empty() && spent + update->seconds > budget_s) break;
  }
  // Of two the shorter: what disturbs an update makes it longer.
  const double ratio = LowerQuantile(std::move(seconds), 0.5) / planned;
  // Without warm-up the first update has cold code and caches, so it is slower than later ones.
  return warm_ups == 0 ? std::min(1.0, ratio) : ratio;
}

}  // namespace ridge

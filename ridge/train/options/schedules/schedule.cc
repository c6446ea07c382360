#include "ridge/train/options/schedules/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "ridge/core/status.h"
#include "ridge/graph/suggest.h"

namespace ridge {
namespace {

const Schedule* Find(const std::string& name) {
  for (const Schedule& schedule : AllSchedules()) {
    if (schedule.name == name) return &schedule;
  }
  return nullptr;
}

}  // namespace

const std::vector<Schedule>& AllSchedules() {
  static const std::vector<Schedule> kSchedules = {ConstantSchedule(), StepSchedule(),
                                                   CosineSchedule(), RampSchedule()};
  return kSchedules;
}

Status CheckSchedule(const ScheduleOptions& options) {
  if (Find(options.name) == nullptr) {
    std::vector<std::string> names;
    for (const Schedule& schedule : AllSchedules()) names.push_back(schedule.name);
    return InvalidArgument(fmt::format("no schedule '{}'{} (there are: {})", options.name,
                                       DidYouMean(options.name, names), fmt::join(names, ", ")));
  }
  if (!(options.lr > 0) || !std::isfinite(options.lr))
    return InvalidArgument(fmt::format("--lr is {}; it must be above 0 and finite", options.lr));
  if (options.warmup_steps < 0)
    return InvalidArgument(
        fmt::format("--warmup is {}; it must be 0 or more", options.warmup_steps));
  return Status();
}

double LearningRate(const ScheduleOptions& options, int64_t step) {
  const int64_t warmup = options.warmup_steps;
  if (step < warmup) {
    return options.lr * static_cast<double>(step + 1) / static_cast<double>(warmup);
  }
  const Schedule* schedule = Find(options.name);
  RIDGE_CHECK(schedule != nullptr, "no schedule " + options.name);
  const int64_t total = std::max<int64_t>(options.total_steps - warmup, 1);
  return options.lr * schedule->factor(step - warmup, total);
}

}  // namespace ridge

#include "ridge/lower/kernel_rates.h"

#include <algorithm>
#include <cmath>

#include "ridge/lower/kernel_query.h"

namespace ridge {
namespace {

struct Range {
  double work = 0, seconds = 0;
  double log_work = 0;  // sum over runs, weighted by their seconds
};

int64_t BytesOf(const Work& work) { return work.cost.bytes_read + work.cost.bytes_written; }

bool IsByFlops(const Work& work) { return work.cost.flops >= 8 * BytesOf(work); }

constexpr double kRangeFactor = 4;

int RangeOf(double work) {
  return static_cast<int>(std::floor(std::log2(work) / std::log2(kRangeFactor)));
}

// Shorter runs are ruled by their start, and say nothing of larger work.
constexpr double kLeastSeconds = 2e-6;

bool Covers(const std::vector<KernelRate>& points, double work) {
  if (points.empty()) return false;
  const KernelRate& last = points.back();
  const bool in_range = work <= kRangeFactor * last.work;
  return in_range || last.work / last.per_s >= kLeastSeconds;
}

double RateAt(const std::vector<KernelRate>& points, double work) {
  const auto above = std::find_if(points.begin(), points.end(),
                                  [&](const KernelRate& point) { return point.work >= work; });
  if (above == points.begin()) return points.front().per_s;
  if (above == points.end()) return points.back().per_s;
  const KernelRate& below = *(above - 1);
  const double t = std::log(work / below.work) / std::log(above->work / below.work);
  return below.per_s * std::pow(above->per_s / below.per_s, t);
}

}  // namespace

double RatedWork(const Work& work) {
  return static_cast<double>(IsByFlops(work) ? work.cost.flops : BytesOf(work));
}

std::string RateKey(const std::string& kernel, const Work& work) {
  return IsByFlops(work) ? kernel : kernel + " by bytes";
}

std::vector<KernelRate> CondenseRates(const std::vector<TimedWork>& runs) {
  std::map<int, Range> ranges;
  for (const TimedWork& run : runs) {
    if (run.work < 1 || run.seconds <= 0) continue;
    Range& range = ranges[RangeOf(run.work)];
    range.work += run.work;
    range.seconds += run.seconds;
    range.log_work += run.seconds * std::log(run.work);
  }
  std::vector<KernelRate> points;
  for (const auto& [index, range] : ranges)
    points.push_back({std::exp(range.log_work / range.seconds), range.work / range.seconds});
  return points;
}

std::optional<double> RatedSeconds(
    const std::map<std::string, std::vector<KernelRate>>& kernel_rates, const Work& work,
    const KernelChoice& choice) {
  if (choice.one_thread) return std::nullopt;
  const auto found = kernel_rates.find(RateKey(choice.kernel, work));
  const double amount = RatedWork(work);
  if (found == kernel_rates.end() || amount < 1) return std::nullopt;
  if (!Covers(found->second, amount)) return std::nullopt;
  return amount / RateAt(found->second, amount);
}

}  // namespace ridge

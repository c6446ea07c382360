// Whether more devices help, in sentences.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/units.h"
#include "ridge/report/scaling_report.h"

namespace ridge {
namespace {

using Points = std::vector<ScalingPoint>;

constexpr double kHelps = 1.1;  // times the samples a second: less is hardly a help

std::string TimesText(const SpeedUp& up) {
  return fmt::format("{:.2f} times the samples a second", up.times);
}

std::string RangeText(const SpeedUp& up) {
  return fmt::format("({:.2f} to {:.2f})", up.low, up.high);
}

std::string TooLittleMemory(const Points& points) {
  const ScalingPoint* last = nullptr;
  for (const ScalingPoint& point : points) {
    if (point.fits()) break;
    last = &point;
  }
  if (last == nullptr) return "";
  const std::string needs =
      fmt::format("{} of {}", FormatBytes(last->peak_bytes), FormatBytes(last->limit_bytes));
  if (last->devices == 1) return fmt::format("1 device has too little memory: {}.\n", needs);
  const std::string all = last == &points.front()
                              ? std::to_string(last->devices)
                              : fmt::format("{} to {}", points.front().devices, last->devices);
  return fmt::format("{} devices have too little memory: of {} each needs {}.\n", all,
                     last->devices, needs);
}

std::string HelpText(const ScalingPoint& more, const ScalingPoint& first) {
  const SpeedUp up = SpeedUpOf(more, first);
  const char* verb = up.times >= kHelps ? "help" : up.times > 1 ? "hardly help" : "do not help";
  const std::string of = first.devices == 1 ? "one" : std::to_string(first.devices);
  return fmt::format("{} devices {}: {} of {} {}.\n", more.devices, verb, TimesText(up), of,
                     RangeText(up));
}

struct Term {
  const char* what;
  double ScalingPoint::*seconds;
};

constexpr Term kTerms[] = {{"kernels of smaller parts", &ScalingPoint::compute_s},
                           {"computing again", &ScalingPoint::recompute_s},
                           {"the slowest device", &ScalingPoint::stragglers_s},
                           {"tensor collectives", &ScalingPoint::tensor_s},
                           {"waiting for other stages", &ScalingPoint::stages_s},
                           {"sums of gradients", &ScalingPoint::communication_s},
                           {"reading", &ScalingPoint::input_s}};

struct Loss {
  const char* what = "";
  double seconds = 0;
};

// What of a step is most beyond the first one's in equal parts.
Loss LargestLoss(const ScalingPoint& point, const ScalingPoint& first) {
  const double part = static_cast<double>(first.devices * point.batch) /
                      static_cast<double>(point.devices * first.batch);
  Loss largest;
  for (const Term& term : kTerms) {
    const double beyond_s = point.*term.seconds - part * (first.*term.seconds);
    if (beyond_s > largest.seconds) largest = {term.what, beyond_s};
  }
  return largest;
}

std::string LastText(const ScalingPoint& last, const ScalingPoint& best,
                     const ScalingPoint& first) {
  if (best.devices != last.devices) {
    return fmt::format("{} do not beat {}: {:.2f} times its samples a second.\n", last.devices,
                       best.devices, SpeedUpOf(last, best).times);
  }
  const SpeedUp up = SpeedUpOf(last, first);
  const Loss loss = LargestLoss(last, first);
  std::string text = fmt::format("{} devices: {:.2f} times {}, {} of linear", last.devices,
                                 up.times, RangeText(up), FormatPercent(LinearShare(last, first)));
  if (loss.seconds > 0.005 * last.step_s())
    text += fmt::format("; most is lost to {}, {} of a step", loss.what,
                        FormatPercent(loss.seconds / last.step_s()));
  return text + ".\n";
}

}  // namespace

std::string ScalingVerdict(const Points& points) {
  std::string text = TooLittleMemory(points);
  const ScalingPoint* first = FirstFitting(points);
  if (first == nullptr || first == &points.back()) return text;
  text += HelpText(first[1], *first);
  if (first + 1 == &points.back()) return text;
  const ScalingPoint* best = first;
  for (const ScalingPoint* point = first; point <= &points.back(); ++point) {
    if (point->samples_s() > best->samples_s()) best = point;
  }
  return text + LastText(points.back(), *best, *first);
}

}  // namespace ridge

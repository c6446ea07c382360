// The limits are those that the header names; each sentence has the numbers that it was raised by.
#include "ridge/report/counter_alarms.h"

#include <fmt/format.h>

#include "ridge/core/units.h"

namespace ridge {
namespace {

constexpr double kLeastShare = 0.7;
constexpr double kLeastHeadroom = 1.5;

std::string Percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string LastSeconds(const CounterWindow& window) {
  return fmt::format("the last {}", FormatSeconds(window.seconds));
}

// "(88 C, 1290 MHz)", with what is known.
std::string InBrackets(const std::optional<double>& level, const char* unit,
                       const std::optional<double>& clock_mhz) {
  std::string text;
  if (level) text = fmt::format("{:.0f} {}", *level, unit);
  if (clock_mhz) text += fmt::format("{}{:.0f} MHz", text.empty() ? "" : ", ", *clock_mhz);
  return text.empty() ? text : " (" + text + ")";
}

// Waiting for data explains at least half of what is missing; or nothing ran; or what ran was
// small.
std::string IdleSentence(const CounterWindow& window) {
  const DeviceCounters& is = window.counters;
  const std::optional<double> busy = is.sm_share ? is.sm_share : is.utilization;
  if (!busy || *busy >= kLeastShare) return "";
  const double wait = window.seconds > 0 ? window.wait_s / window.seconds : 0;
  const double ran = is.utilization.value_or(*busy);
  if (wait >= (1 - *busy) / 2) {
    return fmt::format(
        "the GPU had work in {} of {}: steps waited for data in {}. hint: more --workers; "
        "`ridge data SPEC --bench` times reading by stage",
        Percent(*busy), LastSeconds(window), Percent(wait));
  }
  if (ran < kLeastShare) {
    return fmt::format(
        "the GPU had work in {} of {}: it waited for launches, not for data ({}). hint: a larger "
        "--batch gives each launch more work",
        Percent(ran), LastSeconds(window), Percent(wait));
  }
  return fmt::format(
      "kernels ran in {} of {} and kept {} of the SMs busy: they are small for this GPU. hint: a "
      "larger --batch",
      Percent(ran), LastSeconds(window), Percent(*busy));
}

// What holds the clock down, in at least `most` of the samples.
struct ClockCause {
  const char* name;  // "heat"
  std::optional<double> DeviceCounters::*share;
  double most;
  const char* hint;
};
constexpr ClockCause kHeat = {"heat", &DeviceCounters::thermal_limit, 0.1,
                              "better cooling; nvidia-smi -q -d TEMPERATURE has the limits"};
constexpr ClockCause kPower = {"the power limit", &DeviceCounters::power_limit, 0.5,
                               "nvidia-smi -q -d POWER has the limit"};
constexpr ClockCause kSetting = {
    "a setting", &DeviceCounters::clock_setting, 0.5,
    "nvidia-smi -q -d CLOCK has it, and nvidia-smi -rac or -rgc takes it back"};

// `level`, in `unit`, is what the cause is seen by.
std::string ClockSentence(const ClockCause& cause, const CounterWindow& window,
                          const std::optional<double>& level = {}, const char* unit = "") {
  const double share = (window.counters.*cause.share).value_or(0);
  if (share < cause.most) return "";
  return fmt::format("{} held the GPU's clock down in {} of {}{}. hint: {}", cause.name,
                     Percent(share), LastSeconds(window),
                     InBrackets(level, unit, window.counters.clock_mhz), cause.hint);
}

std::string BandwidthSentence(const CounterWindow& window) {
  const double share = window.counters.bandwidth_share.value_or(0);
  if (share * kLeastHeadroom <= 1) return "";
  return fmt::format(
      "memory moved {} of its peak bytes in {}, which leaves {:.2f} x: steps wait for memory. "
      "hint: ridge profile names the nodes",
      Percent(share), LastSeconds(window), 1 / share);
}

std::string ErrorsSentence(const DeviceCounters& counters) {
  const auto errors = static_cast<int64_t>(counters.uncorrected_errors.value_or(0));
  if (errors == 0) return "";
  return fmt::format(
      "the GPU's memory had {} that ECC could not correct: what it computed since may be wrong. "
      "hint: nvidia-smi -q -d ECC has the counts; reset the GPU, and train again",
      FormatCountOf(errors, "error"));
}

}  // namespace

void CounterAlarms::Add(Kind kind, std::string sentence, std::vector<std::string>& to) {
  if (!sentence.empty() && said_.insert(kind).second) to.push_back(std::move(sentence));
}

std::vector<std::string> CounterAlarms::Judge(const CounterWindow& window) {
  std::vector<std::string> sentences;
  Add(Kind::kIdle, IdleSentence(window), sentences);
  const DeviceCounters& is = window.counters;
  Add(Kind::kHeat, ClockSentence(kHeat, window, is.temperature_c, "C"), sentences);
  Add(Kind::kPower, ClockSentence(kPower, window, is.power_w, "W"), sentences);
  Add(Kind::kSetting, ClockSentence(kSetting, window), sentences);
  Add(Kind::kBandwidth, BandwidthSentence(window), sentences);
  Add(Kind::kErrors, ErrorsSentence(window.counters), sentences);
  return sentences;
}

std::vector<std::string> CounterAlarms::JudgeErrors(const DeviceCounters& counters) {
  std::vector<std::string> sentences;
  Add(Kind::kErrors, ErrorsSentence(counters), sentences);
  return sentences;
}

}  // namespace ridge

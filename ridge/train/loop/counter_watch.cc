// A driver's counters are of the time before they are read, up to a second of it, so the first
// samples after an interruption are not judged.
#include "ridge/train/loop/counter_watch.h"

namespace ridge {
namespace {

constexpr int64_t kSettlingSamples = 2;

}  // namespace

CounterWatch::CounterWatch(CounterSource* source, Say say, const Options& options)
    : options_(options), say_(std::move(say)), settled_at_(kSettlingSamples) {
  if (source != nullptr) sampler_.emplace(*source, options.period_s);
}

DeviceCounters CounterWatch::SinceReport() const {
  return sampler_ ? sampler_->Sums().Since(reported_) : DeviceCounters();
}

void CounterWatch::EndReport() {
  if (sampler_) reported_ = sampler_->Sums();
}

void CounterWatch::Add(double step_s, double wait_s) {
  if (!sampler_) return;
  seconds_ += step_s;
  wait_s_ += wait_s;
  const int64_t samples = sampler_->samples();
  const bool full = window_ && samples - window_->samples() >= options_.window;
  if (!full && (window_ || samples < settled_at_)) return;
  const CounterSums sums = sampler_->Sums();
  if (full) JudgeWindow(sums);
  window_ = sums;
  seconds_ = wait_s_ = 0;
}

void CounterWatch::JudgeWindow(const CounterSums& sums) {
  for (const std::string& alarm : alarms_.Judge({sums.Since(*window_), seconds_, wait_s_}))
    say_(alarm);
}

void CounterWatch::Interrupt() {
  if (!sampler_) return;
  window_.reset();
  settled_at_ = sampler_->samples() + kSettlingSamples;
}

void CounterWatch::Stop() {
  if (!sampler_) return;
  sampler_->Stop();
  for (const std::string& alarm : alarms_.JudgeErrors(sampler_->Sums().Since({}))) say_(alarm);
}

std::optional<double> CounterWatch::energy_j() const {
  return sampler_ ? sampler_->Sums().Since({}).energy_j : std::nullopt;
}

}  // namespace ridge

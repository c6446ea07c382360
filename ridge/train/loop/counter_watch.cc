// A driver's counters are of the time before they are read, up to a second of it, so the first
// samples after a pause are not judged.  Short epochs are pieces of one window.
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
  const int64_t samples = sampler_->samples();
  if (!piece_) {
    if (samples >= settled_at_) piece_ = sampler_->Sums();
    return;
  }
  seconds_ += step_s;
  wait_s_ += wait_s;
  if (window_.samples() + samples - piece_->samples() < options_.window) return;
  EndPiece();
  for (const std::string& alarm : alarms_.Judge({window_.Since({}), seconds_, wait_s_}))
    say_(alarm);
  window_ = {};
  seconds_ = wait_s_ = 0;
}

// The next one begins here.
void CounterWatch::EndPiece() {
  const CounterSums now = sampler_->Sums();
  window_.AddWindow(*piece_, now);
  piece_ = now;
}

void CounterWatch::Pause() {
  if (piece_) EndPiece();
  piece_.reset();
  paused_ = true;
}

void CounterWatch::Resume() {
  if (sampler_ && paused_) settled_at_ = sampler_->samples() + kSettlingSamples;
  paused_ = false;
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

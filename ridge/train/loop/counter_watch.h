// CounterWatch: the device's counters beside the updates of a run: means for its reports, alarms,
// joules.  Without a source it does nothing.
//
// Its calls come from the thread that trains.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "ridge/report/counter_alarms.h"
#include "ridge/runtime/counter_sampler.h"

namespace ridge {

class CounterWatch {
 public:
  struct Options {
    double period_s = 0.5;
    int64_t window = 20;  // samples that alarms are judged by
  };
  using Say = std::function<void(const std::string& alarm)>;
  // `source` may be nullptr; else it outlives the watch.
  CounterWatch(CounterSource* source, Say say, const Options& options);

  // Since the last EndReport(): means of levels, growth of totals.
  DeviceCounters SinceReport() const;
  void EndReport();

  // After an update that took so long and waited so long for data.
  void Add(double step_s, double wait_s);
  // Something else than updates runs between these two: no alarm is judged by it.  Any number of
  // times.
  void Pause();
  void Resume();

  // Ends the samples, and judges what is not an update's: errors of the memory.
  void Stop();
  std::optional<double> energy_j() const;  // since it began

 private:
  void EndPiece();

  const Options options_;
  const Say say_;
  CounterAlarms alarms_;
  std::optional<CounterSampler> sampler_;
  CounterSums reported_;
  std::optional<CounterSums> piece_;  // where updates alone began, for alarms
  CounterSums window_;                // of the pieces before it
  double seconds_ = 0, wait_s_ = 0;   // of the updates of both
  bool paused_ = false;
  int64_t settled_at_;  // samples from which on they are of updates alone
};

}  // namespace ridge

// DeviceCounters: what a device tells of itself while it works: load, power, heat, errors.
//
// What a device does not tell is empty: a sensor that is not there, a driver that forbids it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ridge {

struct DeviceCounters {
  // Levels; shares are 0 to 1, of the time since about the sample before.
  std::optional<double> utilization = {};      // of the time in which a kernel ran
  std::optional<double> sm_share = {};         // of the processors (SMs) that had work
  std::optional<double> tensor_share = {};     // of the tensor cores' time
  std::optional<double> bandwidth_share = {};  // of the memory's peak bytes a second
  std::optional<double> power_w = {}, temperature_c = {}, clock_mhz = {};
  std::optional<double> memory_bytes = {};  // in use, by all processes
  // 1 while it holds the clock down, else 0; as a mean the share of the samples.
  std::optional<double> thermal_limit = {}, power_limit = {};
  std::optional<double> clock_setting = {};  // that somebody gave the GPU, or GPUs in step with it

  // Totals, from a time on that the device chooses; of a window what they have grown by.
  std::optional<double> energy_j = {}, corrected_errors = {}, uncorrected_errors = {};

  bool operator==(const DeviceCounters&) const = default;
};

struct CounterField {
  const char* name;  // in records: "power_w"
  std::optional<double> DeviceCounters::*value;
  bool total = false;
};
inline constexpr std::array<CounterField, 14> kCounterFields = {
    {{"utilization", &DeviceCounters::utilization},
     {"sm_share", &DeviceCounters::sm_share},
     {"tensor_share", &DeviceCounters::tensor_share},
     {"bandwidth_share", &DeviceCounters::bandwidth_share},
     {"power_w", &DeviceCounters::power_w},
     {"temperature_c", &DeviceCounters::temperature_c},
     {"clock_mhz", &DeviceCounters::clock_mhz},
     {"memory_bytes", &DeviceCounters::memory_bytes},
     {"thermal_limit", &DeviceCounters::thermal_limit},
     {"power_limit", &DeviceCounters::power_limit},
     {"clock_setting", &DeviceCounters::clock_setting},
     {"energy_j", &DeviceCounters::energy_j, true},
     {"corrected_errors", &DeviceCounters::corrected_errors, true},
     {"uncorrected_errors", &DeviceCounters::uncorrected_errors, true}}};

// Where they come from.
class CounterSource {
 public:
  virtual ~CounterSource() = default;
  // As they are now; it may take milliseconds.  One call at a time, by any thread.
  virtual DeviceCounters Read() = 0;
};

// Samples added up; two of these hold the window between them.
class CounterSums {
 public:
  void Add(const DeviceCounters& sample);
  // The samples of `now` that came after `before`.  Totals then grow from the first window's begin
  // to the last one's end.
  void AddWindow(const CounterSums& before, const CounterSums& now);
  int64_t samples() const { return samples_; }

  // Of the samples that came after `before`, an earlier state of these sums: means of levels, and
  // what totals have grown by.  Levels of the last sample where none has come.
  DeviceCounters Since(const CounterSums& before) const;

 private:
  int64_t samples_ = 0;
  std::array<double, kCounterFields.size()> sum_{};
  std::array<int64_t, kCounterFields.size()> told_{};  // samples that have the field
  DeviceCounters first_, last_;
};

}  // namespace ridge

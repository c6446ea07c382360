// The record of `ridge bench suite`, and the comparison of two records.
//
// On a shared machine a time is not comparable by itself.  So each workload also has the rates that
// its own runs measured: `peak_flops_per_s` (matmul) and `bytes_per_s` (triad).  Against an earlier
// record the machine itself is slower by the factor
//   machine = c * peak_before / peak_now + (1 - c) * bytes_before / bytes_now
// with c, the share of arithmetic in the earlier roofline; the slowdown is the ratio of times
// divided by it.  c is the earlier record's for both sides, so that they have equal weights.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/report/terminal.h"

namespace ridge::cli {

inline constexpr double kMostSlowdown = 0.05;

// One process of `bench step`, or the best of several of them.
struct SuiteRun {
  double ms_min = 0, ms_med = 0, first_step_s = 0, peak_mb = 0;
  double peak_flops_per_s = 0, bytes_per_s = 0;
  double flops_floor_s = 0, roofline_step_s = 0;
};
// `json`: what `bench step --json` prints.  Fails with kInvalidData.
Result<SuiteRun> ParseSuiteRun(const std::string& json);

struct SuiteRecord {
  std::string version, date, device, system;
  int64_t threads = 0, rounds = 0;
  std::vector<std::string> order;        // of the workloads
  std::map<std::string, SuiteRun> best;  // by "cnn:64": minima of times, maxima of rates
};

SuiteRecord NewSuiteRecord(const std::string& device, int64_t threads);
void AddRun(const std::string& workload, const SuiteRun& run, SuiteRecord& record);

// Relative slowdown against an earlier record, with the machine's own taken out: 0.1
// is 10 % slower.  None when that record lacks the workload.
std::optional<double> SlowdownVsBaseline(const std::string& workload, const SuiteRecord& now,
                                         const SuiteRecord& before);

// A sentence for each workload whose time grew by more than kMostSlowdown.
std::vector<std::string> Regressions(const SuiteRecord& now, const SuiteRecord& before);

// `before` may be nullptr.
std::string SuiteToJson(const SuiteRecord& record, const SuiteRecord* before);
Result<SuiteRecord> SuiteFromJson(const std::string& text, const std::string& file);
std::string SuiteReport(const SuiteRecord& record, const SuiteRecord* before,
                        const Terminal& terminal);

}  // namespace ridge::cli

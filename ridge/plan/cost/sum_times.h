// SumTimes: how long the ranks of a job take to add up a block of bytes, as they measured it.
//
// A sum is dist/tree_sum.h's, with nothing beside it.  It is a table by bytes: one latency and one
// rate are wrong at most sizes.  It predicts the seconds that are shown and chooses nothing.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ridge/core/slice_tree.h"
#include "ridge/core/wire_block.h"
#include "ridge/plan/program.h"

namespace ridge {

struct SumTime {
  int64_t bytes = 0;  // of f32
  double seconds = 0;
  double bf16_seconds = 0;  // where they are sent as bf16
};

struct SumTimes {
  std::string device;  // DeviceProfile::id: the CPU type and the threads of a rank
  std::string mpi;     // "Open MPI 4.1.4"
  int64_t ranks = 0;
  int64_t machines = 1;    // that the ranks are on
  int64_t join_bytes = 0;  // of a rank's memory, taken by joining the others and by the first sums
  std::string made_at;     // "2026-11-21T09:00:00Z"
  std::vector<SumTime> sums;  // of blocks of which each rank has one; the smallest first

  bool known() const { return !sums.empty(); }
  // Linear between the sizes that were measured, and beyond the largest by the rate up to it.
  // REQUIRES: known().
  double Seconds(int64_t bytes, bool bf16 = false) const;
  // Of the ranks that share a batch so: as long as the busiest rank's bytes would take in blocks of
  // one a rank.  REQUIRES: known().
  double Seconds(const SliceShare& share, const WireBlock& block) const;
};

std::string SumTimesToJson(const SumTimes& times);
// Fails with kInvalidData.
Result<SumTimes> SumTimesFromJson(const std::string& text, const std::string& file);

// Planned seconds of the sums over ranks in one run of the step.
double SumSeconds(const StepPlan& step);

// Sets modelled_s of the sums over ranks, and nothing corrects it.
void SetSumSeconds(Program& program, const std::function<double(const StepPlan&)>& seconds_of);

// Sets modelled_s of the sums over ranks (plan/tree_sums.h), which no kernel's rates know; call it
// when the times of the nodes were set.
void PriceSums(const SumTimes& times, Program& program);

}  // namespace ridge

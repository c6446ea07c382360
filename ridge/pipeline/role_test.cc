#include "ridge/pipeline/role.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

constexpr int kMicros = 6;

PipelineSchedule Schedule(const char* kind, int devices) {
  return *MakeSchedule(*ParseScheduleKind(kind), devices, kMicros);
}

// Of a value that forward makes and `until` reads.
int64_t Copies(const PipelineSchedule& schedule, int device, Operation until, int capacity = 1) {
  return CopiesOf(schedule, device, capacity, {{{PipelineOp::kForward, device}}, {until}});
}

TEST(PipelineRole, WhatBackwardReadsHasACopyForEachMicroBatchInFlight) {
  const auto kept = [](const char* kind, int devices) {
    std::vector<int64_t> copies;
    for (int d = 0; d < devices; ++d)
      copies.push_back(Copies(Schedule(kind, devices), d, {PipelineOp::kBackward, d}));
    return copies;
  };
  EXPECT_EQ(kept("gpipe", 3), (std::vector<int64_t>{6, 6, 6}));
  EXPECT_EQ(kept("1f1b", 3), (std::vector<int64_t>{3, 2, 1}));
  EXPECT_EQ(Copies(Schedule("zero-bubble", 3), 2, {PipelineOp::kWeights, 2}), 3);
}

TEST(PipelineRole, WhatIsSentStaysUntilItMustHaveBeenTaken) {
  const PipelineSchedule schedule = Schedule("gpipe", 2);
  const Operation sends = {PipelineOp::kSendForward, 0};
  EXPECT_EQ(Copies(schedule, 0, sends, /*capacity=*/0), 1);
  EXPECT_EQ(Copies(schedule, 0, sends, /*capacity=*/1), 2);
  EXPECT_EQ(Copies(schedule, 0, sends, /*capacity=*/kMicros), kMicros);
}

}  // namespace
}  // namespace ridge

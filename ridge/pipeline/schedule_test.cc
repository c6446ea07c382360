#include "ridge/pipeline/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ridge/pipeline/check_schedule.h"

namespace ridge {
namespace {

using testing::ElementsAre;

PipelineSchedule Made(const std::string& kind, int devices, int micros) {
  const Result<PipelineSchedule> schedule = MakeSchedule(*ParseScheduleKind(kind), devices, micros);
  EXPECT_TRUE(schedule.ok()) << schedule.status().message();
  return schedule.ok() ? *schedule : PipelineSchedule();
}

// Without messages.
std::string ComputeText(const std::string& kind, int devices, int micros) {
  PipelineSchedule schedule = Made(kind, devices, micros);
  for (std::vector<Operation>& ops : schedule.ops)
    std::erase_if(ops, [](const Operation& o) { return !o.is_compute(); });
  return ScheduleText(schedule);
}

TEST(Schedule, IsWhatItsPaperShows) {
  EXPECT_EQ(ComputeText("gpipe", 2, 3),
            "0: F0 F1 F2 B0 B1 B2\n"
            "1: F0 F1 F2 B0 B1 B2\n");
  EXPECT_EQ(ComputeText("1f1b", 3, 4),
            "0: F0 F1 F2 B0 F3 B1 B2 B3\n"
            "1: F0 F1 B0 F2 B1 F3 B2 B3\n"
            "2: F0 B0 F1 B1 F2 B2 F3 B3\n");
  EXPECT_EQ(ComputeText("zero-bubble", 3, 4),
            "0: F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3\n"
            "1: F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3\n"
            "2: F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3\n");
  EXPECT_EQ(ComputeText("interleaved:2", 2, 4),
            "0: F0@0 F1@0 F0@2 F1@2 F2@0 B0@2 F3@0 B1@2 F2@2 B0@0 F3@2 B1@0 B2@2 B3@2 B2@0 B3@0\n"
            "1: F0@1 F1@1 F0@3 B0@3 F1@3 B1@3 F2@1 B0@1 F3@1 B1@1 F2@3 B2@3 F3@3 B3@3 B2@1 B3@1\n");
}

TEST(Schedule, ReceivesBeforeAReaderAndSendsBehindAWriter) {
  EXPECT_EQ(ScheduleText(Made("1f1b", 2, 2)),
            "0: F0 sF0 F1 sF1 rB0 B0 rB1 B1\n"
            "1: rF0 F0 B0 sB0 rF1 F1 B1 sB1\n");
  EXPECT_EQ(ScheduleText(Made("gpipe", 1, 2)), "0: F0 F1 B0 B1\n");
  EXPECT_EQ(ScheduleText(Made("interleaved:2", 1, 1)), "0: F0@0 F0@1 B0@1 B0@0\n");
}

TEST(Schedule, IsPrintedAsItIsRead) {
  for (const char* text : {"gpipe", "1f1b", "interleaved:2", "interleaved:4", "zero-bubble"})
    EXPECT_EQ(ScheduleKindText(*ParseScheduleKind(text)), text);
  EXPECT_EQ(ScheduleKindText(*ParseScheduleKind("interleaved")), "interleaved:2");
}

TEST(Schedule, RefusesWithWhatIsThereAndWhatShouldBe) {
  for (const char* text :
       {"", "2f2b", "1f1b:2", "interleaved:", "interleaved:1", "interleaved:x"}) {
    EXPECT_EQ(ParseScheduleKind(text).status().message(),
              "--pipeline is '" + std::string(text) +
                  "'; it must be gpipe, 1f1b, interleaved:CHUNKS (2 to 64 a device) or "
                  "zero-bubble. hint: --pipeline 1f1b");
  }
  EXPECT_EQ(MakeSchedule(*ParseScheduleKind("interleaved:2"), 4, 6).status().message(),
            "schedule interleaved:2: 6 micro batches on 4 devices; they must be a multiple. hint: "
            "--accumulate 8");
  EXPECT_EQ(MakeSchedule(*ParseScheduleKind("gpipe"), 4, 0).status().message(),
            "schedule gpipe: 4 devices, 0 micro batches; there must be 1 of each. hint: --mesh p=2 "
            "--accumulate 4");
}

// Every schedule of up to 6 devices and 12 micro batches.
template <typename Do>
void ForAllSchedules(const Do& what) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 12; ++m) {
      for (const char* kind :
           {"gpipe", "1f1b", "zero-bubble", "interleaved:2", "interleaved:3", "interleaved:4"}) {
        const Result<PipelineSchedule> schedule = MakeSchedule(*ParseScheduleKind(kind), p, m);
        if (!schedule.ok()) {
          EXPECT_NE(m % p, 0) << kind;
          continue;
        }
        what(*schedule);
      }
    }
  }
}

TEST(Schedule, OfAnySizeIsCompleteAndEndsWithFewMessagesWaiting) {
  ForAllSchedules([](const PipelineSchedule& s) {
    const Status status = CheckSchedule(s, /*capacity=*/s.micros);
    EXPECT_TRUE(status.ok()) << status.message();
    const bool interleaved = s.chunks > s.devices;
    EXPECT_LE(LeastCapacity(s), interleaved ? s.devices : 1) << s.name << "\n" << ScheduleText(s);
  });
}

TEST(Schedule, KeepsAsManyMicroBatchesAsItsPaperSays) {
  EXPECT_THAT(MostKeptMicros(Made("gpipe", 4, 8)), ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(MostKeptMicros(Made("1f1b", 4, 8)), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(MostKeptMicros(Made("1f1b", 4, 2)), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(MostKeptMicros(Made("zero-bubble", 4, 8)), ElementsAre(4, 4, 4, 4));
  // Megatron-LM's: (v - 1) p + 2 (p - d - 1) + 1 chunks, so 1 + (p - 1) / (p v) of 1f1b's p.
  EXPECT_THAT(MostKeptMicros(Made("interleaved:2", 4, 8)), ElementsAre(11, 9, 7, 5));
  EXPECT_THAT(MostKeptBytes(Made("1f1b", 3, 8), {10, 100, 1000}), ElementsAre(30, 200, 1000));
}

// ---- what a checker must find

std::string Broken(PipelineSchedule schedule, int capacity = 8) {
  return CheckSchedule(schedule, capacity).message();
}

TEST(CheckSchedule, FindsWhatIsMissingOrTooMuch) {
  PipelineSchedule s = Made("1f1b", 2, 2);
  s.ops[1].pop_back();
  EXPECT_EQ(Broken(s), "schedule 1f1b: sB1 of chunk 1 is missing on device 1");
  s = Made("1f1b", 2, 2);
  s.ops[1].push_back({PipelineOp::kWeights, 1, 1});
  EXPECT_EQ(Broken(s), "schedule 1f1b: W1 of chunk 1 is too much");
  s = Made("1f1b", 2, 2);
  s.ops.pop_back();
  EXPECT_EQ(Broken(s), "schedule 1f1b: has operations of 1 devices; there are 2");
  s = Made("1f1b", 2, 1);
  std::swap(s.ops[0], s.ops[1]);
  EXPECT_EQ(Broken(s), "schedule 1f1b: rF0 of chunk 1 is on device 0; it must be on 1");
}

TEST(CheckSchedule, FindsWhatComesTooEarly) {
  PipelineSchedule s = Made("1f1b", 2, 2);
  std::swap(s.ops[1][0], s.ops[1][1]);
  EXPECT_EQ(Broken(s), "schedule 1f1b: device 1 has F0 before rF0; it must come behind");
  s = Made("1f1b", 2, 2);
  std::swap(s.ops[0][4], s.ops[0][5]);
  EXPECT_EQ(Broken(s), "schedule 1f1b: device 0 has B0 before rB0; it must come behind");
}

TEST(CheckSchedule, FindsSumsInAnotherOrder) {
  PipelineSchedule s = Made("gpipe", 1, 3);
  std::swap(s.ops[0][3], s.ops[0][4]);
  EXPECT_EQ(Broken(s),
            "schedule gpipe: device 0 has B0 behind micro batch 1; micro batches of a chunk must "
            "be in increasing order");
}

TEST(CheckSchedule, NamesTheDevicesThatWaitForEachOther) {
  EXPECT_EQ(Broken(Made("1f1b", 2, 4), /*capacity=*/0),
            "schedule 1f1b: with 0 messages on their way devices wait for each other: device 0 at "
            "operation 3 (sF1) for device 1, device 1 at operation 3 (sB0) for device 0. hint: a "
            "capacity of 1");
  EXPECT_EQ(Broken(Made("gpipe", 4, 4), /*capacity=*/0), "");
}

}  // namespace
}  // namespace ridge

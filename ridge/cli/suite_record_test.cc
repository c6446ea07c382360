#include "ridge/cli/suite_record.h"

#include <gtest/gtest.h>

namespace ridge::cli {
namespace {

SuiteRun RunOf(double ms, double peak = 100e9, double bandwidth = 10e9) {
  SuiteRun run;
  run.ms_min = run.ms_med = ms;
  run.peak_flops_per_s = peak;
  run.bytes_per_s = bandwidth;
  run.flops_floor_s = 0.5 * ms / 1e3;
  run.roofline_step_s = 0.5 * ms / 1e3;  // all of it arithmetic
  return run;
}

SuiteRecord Record(const SuiteRun& run) {
  SuiteRecord record = NewSuiteRecord("cpu", 2);
  AddRun("cnn:64", run, record);
  return record;
}

TEST(SuiteRecordTest, TheBestOfSeveralRunsIsKept) {
  SuiteRecord record = Record(RunOf(2.0));
  SuiteRun second = RunOf(1.5);
  second.peak_mb = 7;
  AddRun("cnn:64", second, record);
  EXPECT_EQ(record.order.size(), 1U);
  EXPECT_EQ(record.best.at("cnn:64").ms_min, 1.5);
  EXPECT_EQ(record.best.at("cnn:64").peak_mb, 7);
}

TEST(SuiteRecordTest, ASlowMachineIsNoRegression) {
  const SuiteRecord before = Record(RunOf(1.0));
  EXPECT_NEAR(*SlowdownVsBaseline("cnn:64", Record(RunOf(1.25, 80e9)), before), 0, 1e-9);
  EXPECT_TRUE(Regressions(Record(RunOf(1.25, 80e9)), before).empty());
}

TEST(SuiteRecordTest, ASlowProgramIsOne) {
  const SuiteRecord before = Record(RunOf(1.0));
  EXPECT_TRUE(Regressions(Record(RunOf(1.04)), before).empty());
  const std::vector<std::string> found = Regressions(Record(RunOf(1.25)), before);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0],
            "cnn:64 has become slower: 1.25 ms against 1.00 ms before, +25.0 % once the machine is "
            "taken out");
}

TEST(SuiteRecordTest, MemoryBoundWorkloadsFollowTheBandwidth) {
  SuiteRun run = RunOf(1.0);
  run.flops_floor_s = 0;
  EXPECT_NEAR(*SlowdownVsBaseline("cnn:64", Record(RunOf(2.0, 100e9, 5e9)), Record(run)), 0, 1e-9);
}

TEST(SuiteRecordTest, AWorkloadThatIsNewHasNoSlowdown) {
  EXPECT_FALSE(SlowdownVsBaseline("mlp:1", Record(RunOf(1)), Record(RunOf(1))).has_value());
}

TEST(SuiteRecordTest, JsonComesBack) {
  const SuiteRecord record = Record(RunOf(1.5));
  const Result<SuiteRecord> read = SuiteFromJson(SuiteToJson(record, nullptr), "file");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->best.at("cnn:64").ms_min, 1.5);
  EXPECT_EQ(read->threads, 2);
  EXPECT_EQ(SuiteFromJson("{}", "file").status().code(), ErrorCode::kInvalidData);
}

}  // namespace
}  // namespace ridge::cli

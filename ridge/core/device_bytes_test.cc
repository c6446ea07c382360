#include "ridge/core/device_bytes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ridge {
namespace {

DeviceBytes Quiet() {
  DeviceBytes bytes;
  bytes.device = "cuda:0";
  bytes.planned = {.context = 30, .arena = 40, .kernels = 9, .graphs = 5};
  bytes.peak_bytes = 95;
  bytes.used = {.before = 10, .context = 40, .arena = 80, .kernels = 88, .graphs = 92, .end = 92};
  bytes.planned_staging = bytes.staging = 4096;
  return bytes;
}

TEST(DeviceBytes, PartsAreDifferencesOfReadings) {
  const DeviceBytes bytes = Quiet();
  EXPECT_EQ(bytes.measured(), (DeviceParts{.context = 30, .arena = 40, .kernels = 8, .graphs = 4}));
  EXPECT_EQ(*bytes.used.before + bytes.measured().all() + bytes.growth(), bytes.used.end);
}

TEST(DeviceBytes, WithoutTheFirstReadingTheContextHasWhatWasInUse) {
  DeviceBytes bytes = Quiet();
  bytes.used.before.reset();
  EXPECT_EQ(bytes.measured().context, 40);
  EXPECT_EQ(bytes.verdict(), BytesVerdict::kProven);
}

TEST(DeviceBytes, AreProvenUpToThePeakOfThePlan) {
  DeviceBytes bytes = Quiet();
  EXPECT_EQ(bytes.verdict(), BytesVerdict::kProven);
  bytes.peak_bytes = 92;
  EXPECT_EQ(bytes.verdict(), BytesVerdict::kProven);
  bytes.peak_bytes = 91;
  EXPECT_EQ(bytes.verdict(), BytesVerdict::kMoreThanPlanned);
}

TEST(DeviceBytes, WhatGrowsInTheRunIsALeakAlsoBelowThePeak) {
  DeviceBytes bytes = Quiet();
  bytes.used.end += 1;
  EXPECT_EQ(bytes.growth(), 1);
  EXPECT_EQ(bytes.verdict(), BytesVerdict::kLeak);
}

TEST(DeviceBytes, OtherProcessesAndBytesThatGoBackProveNothing) {
  DeviceBytes bytes = Quiet();
  bytes.others.count = 1;
  EXPECT_EQ(bytes.verdict(), BytesVerdict::kShared);
  int64_t* const readings[] = {&bytes.used.context, &bytes.used.arena, &bytes.used.kernels,
                               &bytes.used.graphs, &bytes.used.end};
  for (int64_t* const reading : readings) {
    bytes = Quiet();
    *reading = 5;
    EXPECT_EQ(bytes.verdict(), BytesVerdict::kShared);
    EXPECT_GT(bytes.given_back(), 0);
  }
}

TEST(DeviceBytes, ComeBackFromJson) {
  DeviceBytes bytes = Quiet();
  EXPECT_EQ(DeviceBytesFromJson(DeviceBytesToJson(bytes)), bytes);
  bytes.used.before.reset();
  bytes.no_before = "libnvidia-ml.so.1 is not found";
  bytes.others = {2, std::nullopt};
  EXPECT_EQ(DeviceBytesFromJson(DeviceBytesToJson(bytes)), bytes);
}

TEST(DeviceBytes, JsonHasReadingsPartsAndVerdict) {
  EXPECT_EQ(DeviceBytesToJson(Quiet()).dump(),
            R"({"device":"cuda:0","verdict":"proven","peak_bytes":95,)"
            R"("used":{"before":10,"context":40,"arena":80,"kernels":88,"graphs":92,"end":92},)"
            R"("planned":{"context":30,"arena":40,"kernels":9,"graphs":5,"staging":4096},)"
            R"("measured":{"context":30,"arena":40,"kernels":8,"graphs":4,"staging":4096},)"
            R"("growth":0,"other_processes":{"count":0,"bytes":0}})");
}

class Readings : public DeviceBytesLog {
 public:
  explicit Readings(std::vector<OtherProcesses> told) : told_(std::move(told)) {}
  void See() { SeeOthers(); }

 private:
  OtherProcesses ReadOthers() override { return told_[next_++]; }
  std::vector<OtherProcesses> told_;
  size_t next_ = 0;
};

TEST(DeviceBytesLog, KeepsTheMostOfOtherProcesses) {
  Readings log({{1, 8}, {2, 4}, {0, 0}});
  log.See();
  EXPECT_EQ(log.bytes().others, (OtherProcesses{1, 8}));
  log.See();
  EXPECT_EQ(log.bytes().others, (OtherProcesses{2, 8}));
  log.End(/*used_bytes=*/100, /*peak_bytes=*/120);
  EXPECT_EQ(log.bytes().others, (OtherProcesses{2, 8}));
  EXPECT_EQ(log.bytes().used.end, 100);
  EXPECT_EQ(log.bytes().peak_bytes, 120);
}

TEST(DeviceBytesLog, BytesThatAreNotToldOnceStayUnknown) {
  Readings log({{1, std::nullopt}, {1, 4}});
  log.See();
  log.See();
  EXPECT_EQ(log.bytes().others, (OtherProcesses{1, std::nullopt}));
}

}  // namespace
}  // namespace ridge

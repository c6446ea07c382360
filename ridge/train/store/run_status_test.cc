#include "ridge/train/store/run_status.h"

#include <gtest/gtest.h>

#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"

namespace ridge {
namespace {

const RunStatus kFailed = {RunPhase::kFailed, 12, 10, 3, {6, 1, 1}, "rank 1: \"no\" data", true};

TEST(RunStatusTest, WhatIsWrittenIsRead) {
  for (const RunStatus& status :
       {RunStatus{}, kFailed, RunStatus{RunPhase::kStopped, 7, 7, 2}, RunStatus{RunPhase::kDone}}) {
    const std::string text = RunStatusToJson(status);
    const Result<RunStatus> read = RunStatusFromJson(text, "f");
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(RunStatusToJson(*read), text);
  }
}

TEST(RunStatusTest, HasOneFormForScripts) {
  EXPECT_EQ(RunStatusToJson(kFailed),
            "{\n  \"state\": \"failed\",\n  \"step\": 12,\n  \"checkpoint\": 10,\n  \"ranks\": 3,\n"
            "  \"why\": \"rank 1: \\\"no\\\" data\",\n  \"may_retry\": true,\n  \"slices\": [\n"
            "    6,\n    1,\n    1\n  ]\n}\n");
}

TEST(RunStatusTest, RefusesWhatIsNone) {
  for (const char* text : {"", "{}", "[1]", "{\"state\": \"odd\"}", "{\"state\": 1}"}) {
    const Result<RunStatus> read = RunStatusFromJson(text, "f");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().message().substr(0, 28), "f: not the status of a run: ");
  }
}

TEST(RunStatusTest, TheFirstFailureStays) {
  const std::string folder = TestFolder() + "/status";
  ASSERT_TRUE(MakeFolders(folder).ok());
  EXPECT_FALSE(*ReadRunStatus(folder));
  ASSERT_TRUE(WriteRunStatus(folder, 0, RunStatus{}).ok());
  ASSERT_TRUE(WriteRunStatus(folder, 1, kFailed).ok());
  RunStatus later = kFailed;
  later.why = "rank 0: the transport failed";
  ASSERT_TRUE(WriteRunStatus(folder, 0, later).ok());
  EXPECT_EQ((*ReadRunStatus(folder))->why, kFailed.why);
  ASSERT_TRUE(WriteRunStatus(folder, 0, RunStatus{}).ok());
  EXPECT_EQ((*ReadRunStatus(folder))->state, RunPhase::kRunning);
}

}  // namespace
}  // namespace ridge

#include "ridge/cli/supervise.h"

#include <gtest/gtest.h>

#include "ridge/cli/exit_codes.h"

namespace ridge::cli {
namespace {

class RestartPolicyTest : public ::testing::Test {
 protected:
  // An attempt that came to its folder and ended so.
  static Attempt Ended(RunPhase phase, int64_t before, int64_t after) {
    Attempt attempt;
    attempt.status.emplace();
    attempt.status->state = phase;
    attempt.status->why = phase == RunPhase::kFailed ? "why" : "";
    attempt.code = 137;
    attempt.checkpoint_before = before;
    attempt.checkpoint_after = after;
    return attempt;
  }
  static Attempt Unheard(int code) {
    Attempt attempt;
    attempt.code = code;
    return attempt;
  }

  RestartPolicy policy_{{.devices = 4, .min_devices = 2, .max_restarts = 3}};
};

TEST_F(RestartPolicyTest, BelievesTheRunAndNotItsLauncher) {
  EXPECT_FALSE(policy_.After(Ended(RunPhase::kDone, 0, 9)).again);
  EXPECT_EQ(policy_.After(Ended(RunPhase::kDone, 0, 9)).code, kExitOk);
}

TEST_F(RestartPolicyTest, RestartsWithProgressCostNothing) {
  for (int64_t step = 0; step < 100; ++step) {
    const auto decision = policy_.After(Ended(RunPhase::kRunning, step, step + 1));
    EXPECT_TRUE(decision.again);
    EXPECT_EQ(policy_.devices(), 4);
  }
  EXPECT_EQ(policy_.After(Ended(RunPhase::kRunning, 1, 2)).text,
            "ended without a word (mpirun's exit code is 137), newest checkpoint: step 2; starting "
            "again on 4 devices");
}

TEST_F(RestartPolicyTest, WithoutProgressThereIsADeviceFewerEachTime) {
  std::vector<int64_t> devices;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(policy_.After(Ended(RunPhase::kRunning, 5, 5)).again);
    devices.push_back(policy_.devices());
  }
  EXPECT_EQ(devices, (std::vector<int64_t>{4, 3, 2}));
  const auto last = policy_.After(Ended(RunPhase::kRunning, 5, 5));
  EXPECT_FALSE(last.again);
  EXPECT_EQ(last.code, kExitFailed);
}

TEST_F(RestartPolicyTest, ProgressCountsAnew) {
  (void)policy_.After(Unheard(9));
  (void)policy_.After(Unheard(9));
  EXPECT_TRUE(policy_.After(Ended(RunPhase::kRunning, 0, 7)).again);
  EXPECT_EQ(policy_.devices(), 3);  // what was lost stays lost
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(policy_.After(Unheard(9)).again);
  EXPECT_FALSE(policy_.After(Unheard(9)).again);
}

TEST_F(RestartPolicyTest, WhatWouldFailAgainIsNotTriedAgain) {
  Attempt attempt = Ended(RunPhase::kFailed, 0, 3);
  attempt.code = kExitData;
  EXPECT_FALSE(policy_.After(attempt).again);
  EXPECT_EQ(policy_.After(attempt).code, kExitData);
  attempt.code = 137;
  EXPECT_EQ(policy_.After(attempt).code, kExitFailed);
  attempt.status->may_retry = true;
  EXPECT_TRUE(policy_.After(attempt).again);
  EXPECT_FALSE(policy_.After(Unheard(kExitUsage)).again);
  EXPECT_EQ(policy_.After(Unheard(kExitUsage)).code, kExitUsage);
  EXPECT_TRUE(policy_.After(Unheard(1)).again);
}

TEST_F(RestartPolicyTest, ASignalToTheLaunchEndsIt) {
  Attempt attempt = Ended(RunPhase::kStopped, 3, 8);
  EXPECT_TRUE(policy_.After(attempt).again);  // a rank alone was asked: its node goes away
  attempt.asked = true;
  EXPECT_FALSE(policy_.After(attempt).again);
  EXPECT_EQ(policy_.After(attempt).code, kExitStopped);
  Attempt early = Unheard(128 + 10);
  early.asked = true;
  EXPECT_EQ(policy_.After(early).code, kExitInterrupted);
  attempt.status->state = RunPhase::kDone;
  EXPECT_EQ(policy_.After(attempt).code, kExitOk);
}

}  // namespace
}  // namespace ridge::cli

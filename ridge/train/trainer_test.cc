#include "ridge/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ridge/core/file_lock.h"
#include "ridge/core/files.h"
#include "ridge/train/test_support.h"

namespace ridge {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class TrainerTest : public testing::Test {
 protected:
  // 12 features and a label a line.
  TrainerTest() {
    std::ofstream csv(folder_.File("data.csv"));
    uint32_t state = 1;
    for (int sample = 0; sample < kSamples; ++sample) {
      for (int i = 0; i < 12; ++i) {
        state = state * 1664525 + 1013904223;
        csv << (state >> 16) / 65536.0 << ',';
      }
      csv << sample % 3 << '\n';
    }
  }

  TrainRequest Request(const std::string& out) {
    TrainRequest request = TinyRequest(folder_.File(out));
    request.options.data = "csv:" + folder_.File("data.csv");
    request.options.validation = "0.2";  // 9 of 43: 34 are left, 4 steps of 8 an epoch
    request.options.epochs = 3;
    return request;
  }

  TrainOutcome Run(const TrainRequest& request) {
    Result<TrainOutcome> outcome = Train(request, machine_.get(), recorder_);
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
    return outcome.ok() ? *outcome : TrainOutcome();
  }

  Status Failure(const TrainRequest& request) {
    const Result<TrainOutcome> outcome = Train(request, machine_.get(), recorder_);
    EXPECT_FALSE(outcome.ok());
    return outcome.status();
  }

  json ReadJson(const std::string& name) {
    const Result<std::string> text = ReadFile(folder_.File(name));
    EXPECT_TRUE(text.ok()) << text.status().message();
    return text.ok() ? json::parse(*text) : json();
  }

  static constexpr int kSamples = 43;
  TempFolder folder_;
  TestMachine machine_;
  Recorder recorder_;
};

TEST_F(TrainerTest, ACompletedRunHasEveryFile) {
  const TrainOutcome outcome = Run(Request("run"));
  EXPECT_EQ(outcome.end, RunEnd::kCompleted);
  EXPECT_EQ(outcome.step, 12);
  EXPECT_EQ(recorder_.losses.size(), 12u);
  EXPECT_EQ(recorder_.evaluations.size(), 3u);
  EXPECT_EQ(recorder_.evaluations[0].result.samples, 9);
  EXPECT_EQ(recorder_.evaluations[0].data, "validation");
  EXPECT_EQ(recorder_.checkpoints, (std::vector<int64_t>{4, 8, 12}));
  const json summary = ReadJson("run/summary.json");
  for (const char* key :
       {"model", "seed", "steps", "epochs", "test_accuracy", "loss", "wall_s", "planned",
        "measured", "skipped_samples", "parameters_sha256", "ridge_version", "device", "threads"})
    EXPECT_TRUE(summary.contains(key)) << key;
  EXPECT_EQ(summary["steps"], 12);
  EXPECT_EQ(summary["epochs"], 3);
  EXPECT_EQ(summary["skipped_samples"], 2);
  EXPECT_GT(summary["measured"]["step_s"], 0);
  EXPECT_EQ(ReadJson("run/options.json")["batch"], 8);
  EXPECT_TRUE(ReadJson("run/plan.json").contains("peak_bytes"));
  for (const char* file : {"run/metrics.jsonl", "run/checkpoints/step-12/state.json",
                           "run/checkpoints/best/parameters.safetensors"})
    EXPECT_TRUE(std::filesystem::exists(folder_.File(file))) << file;
  EXPECT_FALSE(std::filesystem::exists(folder_.File("run/trace.json")));
}

TEST_F(TrainerTest, ResumingAnywhereGivesTheSameBits) {
  const std::string whole = Run(Request("whole")).summary.parameters_sha256;
  EXPECT_EQ(Run(Request("again")).summary.parameters_sha256, whole);
  for (int64_t stop = 1; stop < 12; ++stop) {
    TrainRequest request = Request("stop" + std::to_string(stop));
    request.preempt_after_step = stop;
    EXPECT_EQ(Run(request).end, RunEnd::kPreempted);
    request.preempt_after_step = -1;
    request.resume = true;
    const TrainOutcome outcome = Run(request);
    EXPECT_EQ(recorder_.start.step, stop);
    EXPECT_EQ(outcome.summary.parameters_sha256, whole) << "stopped after " << stop;
  }
}

TEST_F(TrainerTest, AKilledRunGoesOnFromItsLastCheckpoint) {
  const std::string whole = Run(Request("whole")).summary.parameters_sha256;
  TrainRequest request = Request("killed");
  request.options.checkpoint_every = 3;
  request.kill_after_step = 5;
  Run(request);
  request.kill_after_step = -1;
  request.resume = true;
  const TrainOutcome outcome = Run(request);
  EXPECT_EQ(recorder_.start.step, 3);
  EXPECT_EQ(outcome.summary.parameters_sha256, whole);
}

TEST_F(TrainerTest, ResumedMetricsAreThoseOfTheWholeRun) {
  Run(Request("whole"));
  TrainRequest request = Request("parts");
  request.preempt_after_step = 6;
  Run(request);
  request.preempt_after_step = -1;
  request.resume = true;
  Run(request);
  const auto losses = [&](const std::string& name) {
    std::ifstream file(folder_.File(name));
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) {
      const json report = json::parse(line);
      all.push_back(report["step"].dump() + " " + report["loss"].dump() + " " +
                    (report.contains("validation_loss") ? report["validation_loss"].dump() : ""));
    }
    return all;
  };
  EXPECT_EQ(losses("parts/metrics.jsonl"), losses("whole/metrics.jsonl"));
}

TEST_F(TrainerTest, AccumulationOfHalfBatchesIsTheWholeBatch) {
  TrainRequest request = Request("whole");
  request.options.optimizer.name = "sgd";
  request.options.lr = 0.1;
  request.options.validation = "";
  request.options.epochs = 1;
  Run(request);
  const std::vector<double> whole = recorder_.losses;
  recorder_.losses.clear();
  request.options.out = folder_.File("halves");
  request.options.batch = 4;
  request.options.accumulate = 2;
  Run(request);
  ASSERT_EQ(recorder_.losses.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(recorder_.losses[i], whole[i], 1e-6);
}

TEST_F(TrainerTest, ResumingBetweenAccumulatedUpdatesGivesTheSameBits) {
  TrainRequest request = Request("whole");
  request.options.batch = 3;
  request.options.accumulate = 2;  // 34 samples: 5 groups, the rest is left out
  request.options.clip_norm = 0.5;
  const std::string whole = Run(request).summary.parameters_sha256;
  request.options.out = folder_.File("parts");
  request.preempt_after_step = 7;
  Run(request);
  request.preempt_after_step = -1;
  request.resume = true;
  const TrainOutcome outcome = Run(request);
  EXPECT_EQ(outcome.summary.parameters_sha256, whole);
  EXPECT_EQ(outcome.summary.steps, 15);
  EXPECT_EQ(outcome.summary.skipped_samples, 4);
}

TEST_F(TrainerTest, TimingTheKernelsBeforehandLeavesNoTrace) {
  TrainRequest request = Request("plain");
  const std::string plain = Run(request).summary.parameters_sha256;
  for (int64_t accumulate : {1, 2}) {
    request.options.batch = 8 / accumulate;
    request.options.accumulate = accumulate;
    request.options.out = folder_.File("timed" + std::to_string(accumulate));
    request.rehearse_s = 0.02;
    const RunSummary timed = Run(request).summary;
    EXPECT_GT(timed.planned.step_s, 0);
    if (accumulate == 1) {
      EXPECT_EQ(timed.parameters_sha256, plain);
    }
    request.options.out += "-again";
    request.rehearse_s = 0;
    EXPECT_EQ(Run(request).summary.parameters_sha256, timed.parameters_sha256);
  }
}

TEST_F(TrainerTest, AnotherSeedIsAnotherRun) {
  TrainRequest request = Request("seed0");
  const std::string first = Run(request).summary.parameters_sha256;
  request.options.out = folder_.File("seed1");
  request.options.seed = 1;
  EXPECT_NE(Run(request).summary.parameters_sha256, first);
}

TEST_F(TrainerTest, ANonFiniteLossStopsAndNamesTheNode) {
  TrainRequest request = Request("nan");
  request.options.optimizer.name = "sgd";
  request.options.lr = 1e38;
  const Status status = Failure(request);
  EXPECT_EQ(status.code(), ErrorCode::kFailed);
  EXPECT_THAT(status.message(), HasSubstr("step 2: loss is "));
  EXPECT_THAT(status.message(), HasSubstr("first non-finite value: "));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("nan/summary.json")));
}

TEST_F(TrainerTest, AFolderThatHoldsARunIsRefused) {
  Run(Request("run"));
  const Status status = Failure(Request("run"));
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("holds a run already"));
}

TEST_F(TrainerTest, ResumeRefusesConflictingOptions) {
  TrainRequest request = Request("run");
  Run(request);
  request.resume = true;
  request.options.batch = 4;
  request.given = {"batch"};
  EXPECT_THAT(Failure(request).message(), HasSubstr("--batch is 4; the run was started with 8"));
  request.given.clear();  // not given: the stored one counts
  EXPECT_EQ(Run(request).end, RunEnd::kCompleted);
}

TEST_F(TrainerTest, ResumeWithoutACheckpointStartsAtZeroAndSaysSo) {
  TrainRequest request = Request("run");
  request.kill_after_step = 2;
  Run(request);
  request.kill_after_step = -1;
  request.resume = true;
  EXPECT_EQ(Run(request).step, 12);
  ASSERT_EQ(recorder_.warnings.size(), 1u);
  EXPECT_THAT(recorder_.warnings[0], HasSubstr("no checkpoint yet; starting at step 0"));
}

TEST_F(TrainerTest, ResumeWithoutARunStartsOneWhenItKnowsWhat) {
  TrainRequest request = Request("run");
  request.resume = true;
  EXPECT_EQ(Run(request).step, 12);
  ASSERT_EQ(recorder_.warnings.size(), 1u);
  EXPECT_THAT(recorder_.warnings[0], HasSubstr("no run to resume; starting at step 0"));
  request.options.out = folder_.File("other");
  request.options.model = "";
  EXPECT_EQ(Failure(request).code(), ErrorCode::kInvalidData);
}

TEST_F(TrainerTest, AFinishedRunResumesToItsEnd) {
  TrainRequest request = Request("run");
  const TrainOutcome first = Run(request);
  request.resume = true;
  const TrainOutcome second = Run(request);
  EXPECT_EQ(second.summary.parameters_sha256, first.summary.parameters_sha256);
  EXPECT_EQ(second.summary.test_accuracy, first.summary.test_accuracy);
}

TEST_F(TrainerTest, WhatDoesNotFitIsRefusedBeforeAnythingIsWritten) {
  TrainRequest request = Request("run");
  request.options.fit_bytes = 1000;
  const Status status = Failure(request);
  EXPECT_EQ(status.code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(status.message(), HasSubstr("--fit allows 1000 B. [R0101]"));
  EXPECT_THAT(status.message(), HasSubstr("hint: --batch 4 --accumulate 2"));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("run")));
}

TEST_F(TrainerTest, ABatchLargerThanTheDataIsAUsageError) {
  TrainRequest request = Request("run");
  request.options.batch = 35;
  const Status status = Failure(request);
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("--batch is 35; "));
  EXPECT_THAT(status.message(), HasSubstr("has 34 samples to train on"));
}

TEST_F(TrainerTest, ASignalStopsAfterTheStepWithACheckpoint) {
  struct Interrupt : Recorder {
    void OnStep(const StepReport& r) override {
      if (r.step == 3) raise(SIGTERM);
    }
  } observer;
  TrainRequest request = Request("run");
  const Result<TrainOutcome> outcome = Train(request, machine_.get(), observer);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->end, RunEnd::kPreempted);
  EXPECT_EQ(outcome->step, 3);
  EXPECT_TRUE(std::filesystem::exists(folder_.File("run/checkpoints/step-3/state.json")));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("run/summary.json")));
}

TEST_F(TrainerTest, OneProcessAtATimeTrainsInAFolder) {
  TrainRequest request = Request("run");
  request.preempt_after_step = 2;
  Run(request);
  request.preempt_after_step = -1;
  request.resume = true;
  int64_t holder = 0;
  Result<std::optional<FileLock>> lock = FileLock::Take(folder_.File("run/run.lock"), holder);
  ASSERT_TRUE(lock.ok() && lock->has_value());
  const Status status = Failure(request);
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(status.message(), folder_.File("run") + ": process " + std::to_string(getpid()) +
                                  " is training in this folder. hint: wait until it has ended, "
                                  "or stop it: its checkpoint is kept");
  lock->reset();
  EXPECT_EQ(Run(request).end, RunEnd::kCompleted);
}

TEST_F(TrainerTest, AGraphInTextFormTrainsAndResumesFromItsCopy) {
  std::ofstream(folder_.File("net.ridge")) << "graph net\n"
                                              "  x = input f32[batch, 12]\n"
                                              "  label = input i64[batch]\n"
                                              "  w = parameter f32[3,12] init=uniform(0.2)\n"
                                              "  logits = matmul(x, w, transpose_b=1)\n"
                                              "  each = softmax_cross_entropy(logits, label)\n"
                                              "  loss = reduce_mean(each)\n"
                                              "  output logits\n"
                                              "  output loss\n";
  TrainRequest request = Request("run");
  request.options.model = folder_.File("net.ridge");
  request.preempt_after_step = 5;
  Run(request);
  std::filesystem::remove(folder_.File("net.ridge"));
  request.preempt_after_step = -1;
  request.resume = true;
  EXPECT_EQ(Run(request).step, 12);
}

}  // namespace
}  // namespace ridge

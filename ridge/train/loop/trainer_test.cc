#include "ridge/train/loop/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ridge/core/file_lock.h"
#include "ridge/core/files.h"
#include "ridge/train/loop/test_support.h"

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
    // By their hashes 9 of 43: 34 are left, 4 steps of 8 an epoch.
    request.options.validation = "0.13";
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

  // Steps, losses and evaluations of metrics.jsonl.
  std::vector<std::string> MetricsOf(const std::string& run) {
    std::ifstream file(folder_.File(run + "/metrics.jsonl"));
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) {
      json report = json::parse(line);
      for (const char* time : {"samples_s", "input_wait", "step_s"}) report.erase(time);
      all.push_back(report.dump());
    }
    return all;
  }

  // Learning rates of the lines of metrics.jsonl.
  std::vector<double> RatesOf(const std::string& run) {
    std::vector<double> rates;
    for (const std::string& line : MetricsOf(run)) rates.push_back(json::parse(line)["lr"]);
    return rates;
  }

  std::string BestOf(const std::string& run) {
    return std::filesystem::read_symlink(folder_.File(run + "/checkpoints/best")).string();
  }

  // 34 training and 8 test images of 4 by 4, of four kinds.
  std::string WriteIdx() {
    const auto write = [&](const std::string& name, const std::string& head, int count, int size) {
      std::ofstream file(folder_.File(name), std::ios::binary);
      file << head;
      for (int i = 0; i < count * size; ++i)
        file.put(static_cast<char>(size == 1 ? i % 4 : i / size % 4 * 60));
    };
    for (const auto& [part, count] : {std::pair("train", 34), std::pair("t10k", 8)}) {
      const std::string extent = std::string(3, '\0') + static_cast<char>(count);
      const std::string side = std::string(3, '\0') + '\4';
      write(std::string(part) + "-images-idx3-ubyte",
            std::string(2, '\0') + "\x08\x03" + extent + side + side, count, 16);
      write(std::string(part) + "-labels-idx1-ubyte", std::string(2, '\0') + "\x08\x01" + extent,
            count, 1);
    }
    return folder_.path();
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
  EXPECT_EQ(MetricsOf("parts"), MetricsOf("whole"));
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
  EXPECT_EQ(Run(request).end, RunEnd::kWasFinished);
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
  EXPECT_EQ(second.summary.validation_accuracy, first.summary.validation_accuracy);
}

// Resumes a request with another number of epochs.
TrainRequest MoreEpochs(TrainRequest request, int64_t epochs) {
  request.resume = true;
  request.preempt_after_step = -1;
  request.options.epochs = epochs;
  request.given = {"epochs"};
  return request;
}

TrainRequest MoreSteps(TrainRequest request, int64_t steps) {
  request = MoreEpochs(std::move(request), 1);
  request.options.steps = steps;
  request.given = {"steps"};
  return request;
}

TEST_F(TrainerTest, MoreEpochsAfterTheEndGiveTheBitsOfARunThatHadThemFromTheStart) {
  TrainRequest request = Request("whole");
  request.options.warmup = 3;
  request.options.epochs = 6;
  const TrainOutcome whole = Run(request);
  request.options.out = folder_.File("more");
  request.options.epochs = 3;
  Run(request);
  const TrainOutcome more = Run(MoreEpochs(request, 6));
  EXPECT_EQ(recorder_.start.total_steps_before, 12);
  EXPECT_EQ(recorder_.start.total_steps, 24);
  EXPECT_EQ(recorder_.start.lr, recorder_.start.lr_before);  // constant
  EXPECT_EQ(more.summary.parameters_sha256, whole.summary.parameters_sha256);
  EXPECT_EQ(more.summary.epochs, 6);
  EXPECT_EQ(MetricsOf("more"), MetricsOf("whole"));
  EXPECT_EQ(BestOf("more"), BestOf("whole"));
  EXPECT_EQ(ReadJson("more/options.json")["epochs"], 6);
}

TEST_F(TrainerTest, MoreStepsGoOnWithinAnEpochWithTheSameBits) {
  TrainRequest request = Request("whole");
  request.options.epochs.reset();
  request.options.steps = 15;
  const TrainOutcome whole = Run(request);
  request.options.out = folder_.File("more");
  request.options.steps = 6;
  Run(request);
  EXPECT_EQ(Run(MoreSteps(request, 15)).summary.parameters_sha256, whole.summary.parameters_sha256);
  EXPECT_EQ(ReadJson("more/options.json")["steps"], 15);
  // Epochs replace steps: the 5th ends at step 20.
  EXPECT_EQ(Run(MoreEpochs(request, 5)).step, 20);
  EXPECT_TRUE(ReadJson("more/options.json")["steps"].is_null());
}

TEST_F(TrainerTest, ARunThatWasStoppedAfterItGotMoreEpochsGoesOnToThem) {
  TrainRequest request = Request("run");
  Run(request);
  TrainRequest more = MoreEpochs(request, 5);
  more.preempt_after_step = 14;
  EXPECT_EQ(Run(more).end, RunEnd::kPreempted);
  EXPECT_FALSE(std::filesystem::exists(folder_.File("run/summary.json")));
  request.resume = true;
  EXPECT_EQ(Run(request).step, 20);
}

// Rates and epochs are those of a run that had them from the start; the steps before are not.
TEST_F(TrainerTest, AScheduleIsThatOfTheNewEnd) {
  for (const std::string schedule : {"cosine", "step"}) {
    TrainRequest request = Request(schedule + "-whole");
    request.options.schedule = schedule;
    request.options.epochs = 6;
    Run(request);
    const std::vector<double> rates = RatesOf(schedule + "-whole");
    request.options.out = folder_.File(schedule);
    request.options.epochs = 3;
    Run(request);
    Run(MoreEpochs(request, 6));
    EXPECT_GT(recorder_.start.lr, 2 * recorder_.start.lr_before) << schedule;
    const std::vector<double> now = RatesOf(schedule);
    ASSERT_EQ(now.size(), rates.size());
    EXPECT_EQ(std::vector(now.end() - 6, now.end()), std::vector(rates.end() - 6, rates.end()));
    EXPECT_NE(now, rates) << schedule;
  }
}

TEST_F(TrainerTest, FewerEpochsOrStepsThanAreDoneAreRefused) {
  TrainRequest request = Request("run");
  request.preempt_after_step = 9;
  Run(request);
  const std::string run = folder_.File("run");
  EXPECT_EQ(Failure(MoreEpochs(request, 2)).message(),
            "--epochs is 2; " + run + " has come to epoch 3. hint: a larger number goes on");
  EXPECT_EQ(Failure(MoreSteps(request, 8)).message(),
            "--steps is 8; " + run + " has done 9. hint: a larger number goes on");
  EXPECT_EQ(Run(MoreSteps(request, 10)).step, 10);  // fewer than planned, more than done
  const Status status = Failure(MoreSteps(request, 9));
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "--steps is 9; " + run + " has done 10. hint: a larger number goes on");
  EXPECT_EQ(ReadJson("run/summary.json")["steps"], 10);
}

TEST_F(TrainerTest, AFinishedRunStaysAsItIsAndSaysHowToGoOn) {
  TrainRequest request = Request("run");
  Run(request);
  const std::string summary = *ReadFile(folder_.File("run/summary.json"));
  request.resume = true;
  TrainOutcome outcome = Run(request);
  const std::string run = folder_.File("run");
  EXPECT_EQ(outcome.end, RunEnd::kWasFinished);
  EXPECT_EQ(outcome.message, run + " is finished: 3 epochs, 12 steps. hint: --resume " + run +
                                 " --epochs N goes on to N");
  EXPECT_EQ(Run(MoreEpochs(request, 3)).end, RunEnd::kWasFinished);
  EXPECT_EQ(*ReadFile(folder_.File("run/summary.json")), summary);
  // Without its summary the run makes it again.
  std::filesystem::remove(folder_.File("run/summary.json"));
  EXPECT_EQ(Run(request).end, RunEnd::kCompleted);
  EXPECT_EQ(ReadJson("run/summary.json")["steps"], 12);
}

// Nothing is learned, so that the first evaluation stays the best.
TrainRequest Patient(TrainRequest request, int64_t patience) {
  request.options.optimizer.name = "sgd";
  request.options.lr = 1e-30;
  request.options.epochs = 20;
  request.options.patience = patience;
  return request;
}

TEST_F(TrainerTest, ARunOutOfPatienceStopsAndSaysWhatWasBest) {
  const TrainOutcome outcome = Run(Patient(Request("run"), 3));
  EXPECT_EQ(outcome.end, RunEnd::kCompleted);
  EXPECT_EQ(outcome.step, 16);  // the epoch of the best, and three
  EXPECT_EQ(recorder_.evaluations.size(), 4U);
  const json stop = ReadJson("run/summary.json")["stopped_early"];
  EXPECT_EQ(stop["evaluations"], 3);
  EXPECT_EQ(stop["metric"], "accuracy");
  EXPECT_EQ(stop["best"], *recorder_.evaluations[0].result.accuracy);
  EXPECT_EQ(stop["best_step"], 4);
  EXPECT_TRUE(std::filesystem::exists(folder_.File("run/checkpoints/step-16/state.json")));
  Run(Request("other"));
  EXPECT_TRUE(ReadJson("other/summary.json")["stopped_early"].is_null());
}

TEST_F(TrainerTest, PatienceCountsEvaluationsWithoutACheckpointToo) {
  TrainRequest request = Patient(Request("run"), 3);
  request.options.eval_every = 2;
  request.options.checkpoint_every = 5;
  EXPECT_EQ(Run(request).step, 8);
  EXPECT_TRUE(std::filesystem::exists(folder_.File("run/checkpoints/step-8/state.json")));
  EXPECT_EQ(ReadJson("run/summary.json")["parameters_sha256"].get<std::string>().size(), 64U);
}

TEST_F(TrainerTest, AStoppedRunHasThePatienceThatItHad) {
  for (int64_t stop = 1; stop < 16; ++stop) {
    TrainRequest request = Patient(Request("stop" + std::to_string(stop)), 3);
    request.preempt_after_step = stop;
    EXPECT_EQ(Run(request).end, RunEnd::kPreempted);
    request.preempt_after_step = -1;
    request.resume = true;
    EXPECT_EQ(Run(request).step, 16) << "stopped after " << stop;
  }
}

TEST_F(TrainerTest, ARunThatStoppedEarlyGoesOnWithMorePatience) {
  TrainRequest request = Patient(Request("run"), 3);
  Run(request);
  request.resume = true;
  request.options.epochs = 30;
  request.given = {"epochs"};
  const TrainOutcome same = Run(request);
  EXPECT_EQ(same.end, RunEnd::kWasFinished);
  EXPECT_THAT(same.message, HasSubstr("is finished: 4 epochs, 16 steps; stopped early. hint: "));
  EXPECT_THAT(same.message, HasSubstr(" --patience N goes on with N above 3, or 0"));
  request.options.patience = 5;
  request.given = {"patience"};
  EXPECT_EQ(Run(request).step, 24);
  EXPECT_EQ(ReadJson("run/options.json")["patience"], 5);
  request.options.patience = 0;
  EXPECT_EQ(Run(request).step, 80);
  EXPECT_TRUE(ReadJson("run/summary.json")["stopped_early"].is_null());
}

TEST_F(TrainerTest, CheckpointsByTimeAreWrittenWhenTheTimeHasPassed) {
  TrainRequest request = Request("often");
  request.options.checkpoint_every.seconds = 1e-9;
  Run(request);
  EXPECT_EQ(recorder_.checkpoints.size(), 12U);
  recorder_ = {};
  request = Request("seldom");
  request.options.checkpoint_every.seconds = 1e6;
  Run(request);
  EXPECT_EQ(recorder_.checkpoints, std::vector<int64_t>{12});  // the end
  EXPECT_EQ(ReadJson("often/summary.json")["parameters_sha256"],
            ReadJson("seldom/summary.json")["parameters_sha256"]);
}

TEST_F(TrainerTest, WhatIsOfTheValidationSetIsNotCalledOfTheTestSet) {
  const RunSummary summary = Run(Request("run")).summary;
  EXPECT_FALSE(summary.test_accuracy.has_value());
  EXPECT_TRUE(summary.validation_accuracy.has_value());
  EXPECT_EQ(summary.evaluated_on, "validation");
  EXPECT_EQ(summary.loss, summary.validation_loss);
  const json written = ReadJson("run/summary.json");
  EXPECT_TRUE(written["test_accuracy"].is_null());
  EXPECT_EQ(written["validation_accuracy"], *summary.validation_accuracy);
  EXPECT_EQ(written["evaluated_on"], "validation");
  TrainRequest request = Request("alone");
  request.options.validation = "";
  EXPECT_EQ(Run(request).summary.evaluated_on, "training");
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

TEST_F(TrainerTest, ARefusedResumeProposesNothingThatResumeRefuses) {
  TrainRequest request = Request("run");
  request.preempt_after_step = 1;
  ASSERT_EQ(Run(request).end, RunEnd::kPreempted);
  request = Request("run");
  request.resume = true;
  request.options.fit_bytes = 1000;
  request.given = {"fit"};
  const Status status = Failure(request);
  EXPECT_EQ(status.code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(status.message(), HasSubstr("hint: a resumed run keeps its batch"));
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

TEST_F(TrainerTest, ANodeThatRunsBesideOthersIsAnotherKernel) {
  Program alone;
  alone.steps.resize(1);
  alone.steps[0].nodes.resize(1);
  alone.steps[0].body = Region::Sequence(0, 1);
  Program beside = alone;
  beside.steps[0].body.kind = Region::Kind::kParallel;
  beside.steps[0].body.parts = {Region::Sequence(0, 1)};
  EXPECT_EQ(HashKernelChoices(alone), HashKernelChoices(alone));
  EXPECT_NE(HashKernelChoices(alone), HashKernelChoices(beside));
}

// Stops at the first checkpoint, which comes before the evaluation of the same step.
struct StopAtCheckpoint : Recorder {
  void OnCheckpoint(int64_t step, const std::string& path) override {
    Recorder::OnCheckpoint(step, path);
    if (checkpoints.size() == 1) raise(SIGTERM);
  }
};

TEST_F(TrainerTest, ASignalStopsAnEvaluationAndTheResumedRunMakesIt) {
  Run(Request("whole"));
  StopAtCheckpoint observer;
  TrainRequest request = Request("cut");
  const Result<TrainOutcome> outcome = Train(request, machine_.get(), observer);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->end, RunEnd::kPreempted);
  EXPECT_EQ(outcome->step, 4);
  EXPECT_TRUE(observer.evaluations.empty());
  recorder_ = {};
  request.resume = true;
  Run(request);
  ASSERT_EQ(recorder_.evaluations.size(), 3U);
  EXPECT_EQ(recorder_.evaluations[0].step, 4);
  EXPECT_EQ(recorder_.evaluations[0].epoch, 1);
  EXPECT_EQ(MetricsOf("cut"), MetricsOf("whole"));
  for (const int step : {4, 8, 12}) {
    const std::string file = "/checkpoints/step-" + std::to_string(step) + "/state.json";
    EXPECT_EQ(ReadJson("cut" + file)["best"], ReadJson("whole" + file)["best"]) << step;
    EXPECT_TRUE(ReadJson("cut" + file)["owed_evaluation"].is_null()) << step;
  }
  EXPECT_EQ(BestOf("cut"), BestOf("whole"));
}

TEST_F(TrainerTest, ASignalStopsTheLastEvaluationToo) {
  TrainRequest request = Request("run");
  request.options.epochs = 1;
  StopAtCheckpoint observer;
  const Result<TrainOutcome> outcome = Train(request, machine_.get(), observer);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->end, RunEnd::kPreempted);
  EXPECT_FALSE(std::filesystem::exists(folder_.File("run/summary.json")));
  request.resume = true;
  const TrainOutcome resumed = Run(request);
  EXPECT_EQ(resumed.end, RunEnd::kCompleted);
  EXPECT_TRUE(resumed.summary.validation_accuracy.has_value());
}

TEST_F(TrainerTest, BestIsChosenByTheValidationSet) {
  TrainRequest request = Request("run");
  request.options.keep = 3;
  Run(request);
  ASSERT_EQ(recorder_.evaluations.size(), 3U);
  int64_t best = 0;
  double most = -1;
  for (const EvaluationReport& report : recorder_.evaluations) {
    if (*report.result.accuracy > most) best = report.step;
    most = std::max(most, *report.result.accuracy);
  }
  EXPECT_EQ(BestOf("run"), "step-" + std::to_string(best));
  EXPECT_EQ(ReadJson("run/checkpoints/step-12/state.json")["best"]["metric"], "accuracy");
}

// A test set that chose would be one that was trained on.
TEST_F(TrainerTest, WithoutAValidationSetBestIsChosenByTheTrainingLoss) {
  TrainRequest request = Request("run");
  request.options.validation = "";
  request.options.data = "idx:" + WriteIdx();
  request.options.model = "mlp:hidden=8,layers=1,inputs=16,classes=4";
  Run(request);
  ASSERT_EQ(recorder_.evaluations.size(), 3U);
  EXPECT_EQ(recorder_.evaluations[0].data, "test");
  const json best = ReadJson("run/checkpoints/step-12/state.json")["best"];
  EXPECT_EQ(best["metric"], "training_loss");
  EXPECT_EQ(BestOf("run"), "step-" + best["step"].dump());
  std::string last;
  std::ifstream metrics(folder_.File("run/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line);) last = line;
  EXPECT_TRUE(json::parse(last).contains("test_loss")) << last;
  EXPECT_FALSE(json::parse(last).contains("validation_loss")) << last;
}

TEST_F(TrainerTest, ARunAsTheModelGivesItsWeights) {
  const TrainOutcome first = Run(Request("first"));
  TrainRequest request = Request("second");
  request.options.model = folder_.File("first");
  request.options.lr = 1e-30;  // stays where it starts
  request.options.optimizer.name = "sgd";
  const TrainOutcome second = Run(request);
  EXPECT_EQ(recorder_.start.weights_of, folder_.File("first/checkpoints/step-12"));
  EXPECT_EQ(recorder_.start.step, 0);
  EXPECT_EQ(second.summary.parameters_sha256, first.summary.parameters_sha256);
  EXPECT_EQ(ReadJson("second/options.json")["model"], ReadJson("first/options.json")["model"]);
  request.options.out = folder_.File("third");
  request.start_checkpoint = "4";
  EXPECT_NE(Run(request).summary.parameters_sha256, first.summary.parameters_sha256);
  EXPECT_EQ(recorder_.start.weights_of, folder_.File("first/checkpoints/step-4"));
  request.options.out = folder_.File("fourth");
  request.start_checkpoint = "5";
  EXPECT_EQ(Failure(request).message(),
            folder_.File("first/checkpoints") + ": no checkpoint '5'; there are 4 (best), 8, 12");
}

TEST_F(TrainerTest, ARunThatBeganWithAnothersWeightsResumesWithoutIt) {
  Run(Request("first"));
  TrainRequest request = Request("second");
  request.options.model = folder_.File("first");
  const std::string whole = Run(request).summary.parameters_sha256;
  request.options.out = folder_.File("killed");
  request.kill_after_step = 2;  // before its first checkpoint
  Run(request);
  request.kill_after_step = -1;
  request.resume = true;
  EXPECT_EQ(Run(request).summary.parameters_sha256, whole);
  request.options.out = folder_.File("stopped");
  request.resume = false;
  request.preempt_after_step = 6;
  Run(request);
  std::filesystem::remove_all(folder_.File("first"));
  request.preempt_after_step = -1;
  request.resume = true;
  EXPECT_EQ(Run(request).summary.parameters_sha256, whole);
}

TEST_F(TrainerTest, OneProcessAtATimeTrainsInAFolder) {
  TrainRequest request = Request("run");
  request.preempt_after_step = 2;
  Run(request);
  request.preempt_after_step = -1;
  request.resume = true;
  LockHolder holder;
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

TEST_F(TrainerTest, OtherDataAreNoticedWhenARunGoesOn) {
  TrainRequest request = Request("run");
  request.options.validation = "";
  request.preempt_after_step = 3;
  Run(request);
  request.preempt_after_step = -1;
  request.resume = true;
  const std::string data = "csv:" + folder_.File("data.csv");
  const std::string end = ": the result would not be bit-identical. hint: --allow-different";
  const std::string text = *ReadFile(folder_.File("data.csv"));
  const auto rewrite = [&](const std::string& changed) {
    std::ofstream(folder_.File("data.csv")) << changed;
  };
  std::string changed = text;
  changed[changed.size() - 2] = changed.end()[-2] == '0' ? '1' : '0';  // the last label
  rewrite(changed);
  EXPECT_EQ(Failure(request).message(), folder_.File("run") + ": resuming with " + data +
                                            ", whose training samples are others than the run "
                                            "has used" +
                                            end);
  rewrite(text + text);
  EXPECT_EQ(Failure(request).message(), folder_.File("run") + ": resuming with " + data +
                                            ", which has 86 training samples; the run has used "
                                            "43" +
                                            end);
  request.allow_different = true;  // the epochs that are left have the new length
  EXPECT_EQ(Run(request).step, 3 + (10 - 3) + 2 * 10);
}

TEST_F(TrainerTest, BeforeTheFirstStepASignalEndsTheProcessAtOnce) {
  struct StopWhilePlanning : Recorder {
    std::string OnPlanned(const PlannedJob&, const PlanSummary&) override {
      raise(number);
      return "";
    }
    int number = 0;
  } observer;
  TrainRequest request = Request("run");
  for (const auto& [number, code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    observer.number = number;
    EXPECT_EXIT((void)Train(request, machine_.get(), observer).ok(), testing::ExitedWithCode(code),
                "ridge: stopped before the first step\n");
    std::filesystem::remove_all(folder_.File("run"));
  }
  request.preempt_after_step = 3;
  Run(request);
  request.preempt_after_step = -1;
  request.resume = true;
  EXPECT_EXIT((void)Train(request, machine_.get(), observer).ok(), testing::ExitedWithCode(75),
              "the checkpoint is as it was, go on with --resume\n");
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

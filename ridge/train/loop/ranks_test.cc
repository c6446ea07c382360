// Trainings on several ranks, which are threads of the test: their bits are those of one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>

#include "ridge/core/files.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/report/plan_report.h"
#include "ridge/train/job/step_runner.h"
#include "ridge/train/load/forward.h"
#include "ridge/train/loop/ranks_fixture.h"

namespace ridge {
namespace {

using testing::HasSubstr;

constexpr char kTwoSegments[] = "mlp:hidden=800,layers=2,inputs=800,classes=5";  // of sums

TEST_F(RanksTest, AnMlpHasTheSameBitsOnAnyNumberOfRanks) { ExpectTheSameBits(kMlp); }
TEST_F(RanksTest, SegmentsOfSumsHaveTheBitsOfOneProcess) {
  const std::string alone = MustTrain(0, Request(kTwoSegments, "alone")).hash();
  for (const int ranks : {2, 3})
    EXPECT_EQ(MustTrain(ranks, Request(kTwoSegments, std::to_string(ranks))).hash(), alone);
}
TEST_F(RanksTest, ACnnHasTheSameBitsOnAnyNumberOfRanks) { ExpectTheSameBits(kCnn); }
TEST_F(RanksTest, AGptHasTheSameBitsOnAnyNumberOfRanks) { ExpectTheSameBits(kGpt); }

// Statistics of the batch, whose parts the ranks exchange in each norm.
TEST_F(RanksTest, ABatchNormHasTheSameBitsOnAnyNumberOfRanks) {
  ExpectTheSameBits(folder_.Write("net.ridge", kNormNet));
}

TEST_F(RanksTest, UnequalSharesHaveTheSameBits) {
  for (const char* model : {kMlp, kGpt}) {
    TrainRequest request = Request(model, std::string("alone-") + model[0]);
    overlap_ = GradientOverlap::kOff;
    const Ended alone = MustTrain(0, request);
    ExpectTheSameBits(alone, request, {"3,1", "1,1,2", "5,1,1,1"});
    overlap_ = GradientOverlap::kOn;
    ExpectTheSameBits(alone, request, {"1,7", "1,2,1"});
  }
}

// Norms gather the slices of all ranks; 3 of 4 lie on one.
TEST_F(RanksTest, UnequalSharesOfANormHaveTheSameBits) {
  TrainRequest request = Request(folder_.Write("net.ridge", kNormNet), "alone");
  request.options.batch = 8;
  request.options.slices = "4";
  request.options.steps = 1;
  request.options.eval_every = 1;
  const Ended alone = MustTrain(0, request);
  ExpectTheSameBits(alone, request, {"3,1"});
}

TEST_F(RanksTest, EachRankPlansAndTakesTheMemoryOfItsShare) {
  TrainRequest request = Request("mlp:hidden=64,layers=2,inputs=3000,classes=5", "run");
  request.options.shares = "7,1";
  const Ended ended = MustTrain(2, request);
  const std::vector<RankNumbers>& ranks = ended.first().summary.ranks;
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_GT(ranks[0].planned_arena_bytes, ranks[1].planned_arena_bytes);
  for (const RankNumbers& rank : ranks) EXPECT_LE(rank.arena_bytes, rank.planned_arena_bytes);
}

TEST_F(RanksTest, OtherSharesGoOnWithTheSameBits) {
  const std::string whole = MustTrain(0, Request(kMlp, "whole")).hash();
  TrainRequest request = Request(kMlp, "parts");
  request.options.shares = "3,1";
  request.preempt_after_step = 7;
  MustTrain(2, request);
  request.resume = true;
  request.given = {"shares"};
  request.options.shares = "1,3";
  request.preempt_after_step = 13;
  MustTrain(2, request);
  request.given = {};
  request.preempt_after_step = -1;
  EXPECT_EQ(MustTrain(3, request).hash(), whole);  // those of the run are for two: equal ones
}

class SlowRankTest : public RanksTest {
 protected:
  TrainRequest RequestOf(size_t rank, const TrainRequest& request) override {
    TrainRequest own = request;
    own.slower_s = rank == 1 ? 0.024 : 0.008;
    return own;
  }
};

TEST_F(SlowRankTest, ASlowRankGetsFewerSlicesOnTheWayAndTheBitsStay) {
  TrainRequest request = Request(kMlp, "whole");
  request.options.steps = 70;
  request.options.eval_every = 20;
  request.options.checkpoint_every = 20;
  const std::string whole = MustTrain(0, request).hash();
  request.options.out = folder_.File("run");
  request.options.shares = "auto";
  request.preempt_after_step = 45;
  const Ended first = MustTrain(2, request);
  EXPECT_EQ(first.first().step, 45);
  EXPECT_THAT(*ReadFile(folder_.File("run/shares.jsonl")),
              HasSubstr(R"({"step":30,"slices":[6,2],"slices_before":[4,4],"compute_s":[0.0)"));
  EXPECT_THAT(first.recorders[0].checkpoints, testing::ElementsAre(20, 30, 40, 45));
  request.resume = true;
  request.preempt_after_step = -1;
  const Ended ended = MustTrain(2, request);
  EXPECT_EQ(ended.hash(), whole);
  const std::vector<RankNumbers>& ranks = ended.first().summary.ranks;
  EXPECT_EQ((std::vector<int64_t>{ranks[0].slices, ranks[1].slices}), (std::vector<int64_t>{6, 2}));
  EXPECT_THAT(*ReadFile(folder_.File("run/status.json")),
              testing::AllOf(HasSubstr("\"state\": \"done\""), HasSubstr("\"slices\": [\n")));
}

TEST_F(RanksTest, EqualRanksKeepEqualShares) {
  TrainRequest request = Request(kMlp, "run");
  request.options.steps = 40;
  request.options.shares = "auto";
  request.slower_s = 0.004;
  const Ended ended = MustTrain(2, request);
  EXPECT_FALSE(std::filesystem::exists(folder_.File("run/shares.jsonl")));
  EXPECT_EQ(ended.first().summary.ranks[0].slices, 4);
}

TEST_F(RanksTest, SharesAreForSoManyDevices) {
  TrainRequest request = Request(kMlp, "run");
  request.options.shares = "3,1";
  for (const int ranks : {1, 3}) {
    EXPECT_EQ(Refusal(ranks, request), std::string("--shares is '3,1', for 2 devices; there ") +
                                           (ranks == 1 ? "is 1" : "are 3") +
                                           ". hint: a number for each, or --shares equal");
  }
}

TEST_F(RanksTest, SlicesAreEnoughForTheShares) {
  TrainRequest request = Request(kMlp, "run");
  request.options.slices = "auto";
  request.options.shares = "3,1";
  MustTrain(2, request);
  EXPECT_THAT(*ReadFile(folder_.File("run/options.json")), HasSubstr("\"slices\": \"4\""));
}

// What is rounded does not depend on what is sent.
TEST_F(RanksTest, GradientsThatGoAsBF16HaveTheSameBitsOnAnyNumberOfRanks) {
  for (const std::string& model : {std::string(kGpt), folder_.Write("net.ridge", kNormNet)}) {
    const std::string tag = std::to_string(model.size());
    TrainRequest request = Request(model, "f32-" + tag);
    request.options.steps = 3;
    overlap_ = GradientOverlap::kOff;
    const std::string wide = MustTrain(0, request).hash();
    request.options.wire = "bf16";
    request.options.out = folder_.File("alone-" + tag);
    const Ended alone = MustTrain(0, request);
    EXPECT_NE(alone.hash(), wide) << model;
    ExpectTheSameBits(alone, request, {"1,1,1", "3,1"});
    overlap_ = GradientOverlap::kOn;
    ExpectTheSameBits(alone, request, {"1,1", "1,2,1"});
  }
}

TEST_F(RanksTest, OnlySumsOfATreeAreRounded) {
  TrainRequest request = Request(kMlp, "run");
  request.options.sums = "running";
  request.options.wire = "bf16";
  EXPECT_EQ(Refusal(0, request),
            "--wire bf16 rounds the sums of a tree; --sums is running. hint: --sums tree, or "
            "--devices 2");
  request.options.mesh = "d=2";
  EXPECT_EQ(Refusal(2, request),
            "--wire bf16: the collectives of a --mesh send f32. hint: leave --wire out");
}

// Large enough for several buckets.
TEST_F(RanksTest, ExchangesBesideTheStepHaveTheSameBits) {
  for (const char* model : {"mlp:hidden=400,layers=3,inputs=40,classes=5", kGpt}) {
    TrainRequest request = Request(model, std::string("alone-") + model[0]);
    request.options.steps = 5;
    overlap_ = GradientOverlap::kOff;
    const std::string alone = MustTrain(0, request).hash();
    overlap_ = GradientOverlap::kOn;
    for (const int ranks : {2, 3, 8}) {
      request.options.out = folder_.File(model[0] + std::to_string(ranks));
      EXPECT_EQ(MustTrain(ranks, request).hash(), alone) << ranks << " ranks, " << model;
    }
  }
}

// Norms exchange in the middle of the step, and pass the buckets that left before.
TEST_F(RanksTest, ExchangesOfANormBesideTheStepHaveTheSameBits) {
  TrainRequest request = Request("resnet18:image=32,classes=4", "alone");
  request.options.batch = 6;
  request.options.slices = "3";
  request.options.steps = 2;
  request.options.eval_every = 0;
  const std::string alone = MustTrain(0, request).hash();
  overlap_ = GradientOverlap::kOn;
  for (const int ranks : {2, 3}) {
    request.options.out = folder_.File("ranks" + std::to_string(ranks));
    EXPECT_EQ(MustTrain(ranks, request).hash(), alone) << ranks << " ranks";
  }
}

TEST_F(RanksTest, AllRanksFailWhenTheLossIsNotFiniteBesideExchanges) {
  overlap_ = GradientOverlap::kOn;
  TrainRequest request = Request(kMlp, "run");
  request.options.lr = 1e30;
  request.options.optimizer.name = "sgd";
  request.options.clip_norm = 0;
  const Ended ended = TrainOn(2, request);
  for (const Result<TrainOutcome>& outcome : ended.outcomes)
    EXPECT_EQ(outcome.status().code(), ErrorCode::kFailed) << outcome.status().message();
}

TEST_F(RanksTest, DropoutDrawsByTheSampleOfTheBatch) {
  ExpectTheSameBits(folder_.Write("net.ridge", R"(graph net
  x = input f32[batch,12]
  label = input i64[batch]
  rng = input i64[3]
  w1 = parameter f32[12,32] init=uniform(0.3)
  w2 = parameter f32[32,5] init=uniform(0.3)
  h = matmul(x, w1)
  r = relu(h)
  d = dropout(r, rng, rate=0.3, stream=1)
  logits = matmul(d, w2)
  losses = softmax_cross_entropy(logits, label)
  loss = reduce_mean(losses)
  output logits
  output loss
)"));
}

TEST_F(RanksTest, UpToThreeSlicesATreeHasTheBitsOfARunningSum) {
  TrainRequest request = Request(kMlp, "tree");
  for (const std::string slices : {"2", "3"}) {
    request.options.slices = slices;
    request.options.out = folder_.File("tree" + slices);
    request.options.sums = "tree";
    const std::string tree = MustTrain(0, request).hash();
    request.options.out = folder_.File("running" + slices);
    request.options.sums = "running";
    EXPECT_EQ(MustTrain(0, request).hash(), tree) << slices << " slices";
  }
}

TEST_F(RanksTest, EightSlicesInATreeHaveOtherBitsThanInARunningSum) {
  TrainRequest request = Request(kMlp, "tree");
  const std::string tree = MustTrain(0, request).hash();
  request.options.out = folder_.File("running");
  request.options.sums = "running";
  EXPECT_NE(MustTrain(0, request).hash(), tree);
}

// The divisor is the number of labels that count in the whole batch, which no rank reads whole.
TEST_F(RanksTest, IgnoredLabelsAreCountedInTheWholeBatch) {
  ExpectTheSameBits(folder_.Write("net.ridge", R"(graph net
  x = input f32[batch,12]
  label = input i64[batch]
  w1 = parameter f32[12,32] init=uniform(0.3)
  w2 = parameter f32[32,5] init=uniform(0.3)
  h = matmul(x, w1)
  r = relu(h)
  logits = matmul(r, w2)
  each = softmax_cross_entropy(logits, label, ignore_index=1)
  one = constant i64[] 1
  counts = not_equal(label, one)
  weights = cast(counts, to="f32")
  count = reduce_sum(weights)
  least = constant f32[] 1
  divisor = maximum(count, least)
  sum = reduce_sum(each)
  loss = div(sum, divisor)
  output loss
)"));
}

TEST_F(RanksTest, SkippedSamplesAndCountedLabelsDoNotMixOnSeveralRanks) {
  TrainRequest request = Request(kMlp, "run");
  request.options.class_weights = "1,2,1,2,1";
  request.options.bad_records = "skip:3";
  EXPECT_THAT(
      Refusal(2, request),
      HasSubstr("the loss counts 'label' of the whole batch, which several devices cannot do "
                "with --bad-records skip. hint: leave it out, or one device"));
}

TEST_F(RanksTest, OneRankLeads) {
  const Ended ended = MustTrain(3, Request(kMlp, "run"));
  EXPECT_EQ(ended.recorders[0].losses.size(), 30u);
  for (size_t rank = 1; rank < 3; ++rank) {
    EXPECT_TRUE(ended.recorders[rank].losses.empty());
    EXPECT_TRUE(ended.recorders[rank].checkpoints.empty());
  }
  for (const char* file : {"options.json", "plan.json", "metrics.jsonl", "summary.json"})
    EXPECT_TRUE(std::filesystem::exists(folder_.File("run/" + std::string(file)))) << file;
  const std::string plan = *ReadFile(folder_.File("run/plan.json"));
  EXPECT_THAT(plan, HasSubstr("\"collectives\""));
}

TEST_F(RanksTest, AnotherNumberOfRanksGoesOnWithTheSameBits) {
  const std::string whole = MustTrain(0, Request(kMlp, "whole")).hash();
  TrainRequest request = Request(kMlp, "parts");
  request.options.checkpoint_every = 4;
  request.preempt_after_step = 7;
  EXPECT_EQ(MustTrain(2, request).first().end, RunEnd::kPreempted);
  request.resume = true;
  request.preempt_after_step = 13;
  for (const Result<TrainOutcome>& outcome : MustTrain(6, request).outcomes)
    EXPECT_EQ(outcome->step, 13);
  request.preempt_after_step = -1;
  request.kill_after_step = 18;  // the newest checkpoint is that of step 16
  MustTrain(3, request);
  request.kill_after_step = -1;
  EXPECT_EQ(MustTrain(1, request).hash(), whole);
}

TEST_F(RanksTest, ARunOfSeveralRanksGoesOnInAPlainProcess) {
  const std::string whole = MustTrain(0, Request(kMlp, "whole")).hash();
  TrainRequest request = Request(kMlp, "parts");
  request.preempt_after_step = 7;
  MustTrain(4, request);
  request.resume = true;
  request.preempt_after_step = -1;
  EXPECT_EQ(MustTrain(0, request).hash(), whole);
}

class StoppedRankTest : public RanksTest {
 protected:
  TrainRequest RequestOf(size_t rank, const TrainRequest& request) override {
    TrainRequest own = request;
    if (rank == 1) own.preempt_after_step = 5;
    return own;
  }
};

TEST_F(StoppedRankTest, AStopOfOneRankStopsAllAtTheSameStep) {
  const Ended ended = MustTrain(3, Request(kMlp, "run"));
  for (const Result<TrainOutcome>& outcome : ended.outcomes) {
    EXPECT_EQ(outcome->end, RunEnd::kPreempted);
    EXPECT_EQ(outcome->step, 5);
  }
  EXPECT_EQ(ended.recorders[0].checkpoints, std::vector<int64_t>{5});
}

class OtherRankTest : public RanksTest {
 protected:
  TrainRequest RequestOf(size_t rank, const TrainRequest& request) override {
    TrainRequest own = request;
    if (rank == 1) own.options.lr = 0.5;
    return own;
  }
};

TEST_F(OtherRankTest, RanksOfOtherOptionsAreRefused) {
  EXPECT_EQ(
      Refusal(3, Request(kMlp, "run")),
      "rank 1 has other options than rank 0. hint: one program, one command line and the same "
      "RIDGE_* variables everywhere");
}

TEST_F(RanksTest, AllRanksFailWhenTheLossIsNotFinite) {
  TrainRequest request = Request(kMlp, "run");
  request.options.lr = 1e30;
  request.options.optimizer.name = "sgd";
  request.options.clip_norm = 0;
  const Ended ended = TrainOn(3, request);
  for (const Result<TrainOutcome>& outcome : ended.outcomes)
    EXPECT_EQ(outcome.status().code(), ErrorCode::kFailed) << outcome.status().message();
}

TEST_F(RanksTest, ADeviceNeedsASlice) {
  TrainRequest request = Request(kMlp, "run");
  request.options.slices = "4";
  EXPECT_EQ(Refusal(6, request),
            "--slices is 4; 6 devices need at least one each. hint: --slices 8");
  request.options.slices = "auto";
  request.options.batch = 4;
  EXPECT_EQ(Refusal(6, request),
            "--batch is 4, of all devices together; 6 devices need at least a sample each. hint: "
            "--batch 6");
}

TEST_F(RanksTest, TheFewestSlicesAreTheDefault) {
  TrainRequest request = Request(kMlp, "run");
  request.options.slices = "auto";
  request.options.sums = "running";
  MustTrain(3, request);
  const std::string options = *ReadFile(folder_.File("run/options.json"));
  EXPECT_THAT(options, HasSubstr("\"slices\": \"4\""));
  EXPECT_THAT(options, HasSubstr("\"sums\": \"tree\""));
}

TEST_F(RanksTest, ARunInRunningSumsStaysOnOneDevice) {
  TrainRequest request = Request(kMlp, "run");
  request.options.sums = "running";
  request.preempt_after_step = 5;
  MustTrain(0, request);
  request.resume = true;
  const Ended ended = TrainOn(2, request);
  EXPECT_EQ(ended.outcomes[1].status().message(),
            request.options.out +
                ": --sums is running, which gives other bits on another number of devices; "
                "--devices needs tree. hint: a new run, or --resume without --devices");
}

TEST_F(RanksTest, AResnetHasTheSameBitsOnTwoRanksAndOnOne) {
#ifndef NDEBUG
  GTEST_SKIP() << "runs in release builds";
#endif
  TrainRequest request = Request("resnet18:image=32,classes=4", "alone");
  request.options.batch = 8;
  request.options.slices = "4";
  request.options.steps = 2;
  request.options.eval_every = 0;
  const std::string alone = MustTrain(0, request).hash();
  for (const int ranks : {2, 3}) {
    request.options.out = folder_.File("ranks-" + std::to_string(ranks));
    EXPECT_EQ(MustTrain(ranks, request).hash(), alone) << ranks << " ranks";
  }
}

// A loss that is not finite is traced through the exchanges of a batch norm by all ranks.
TEST_F(RanksTest, AllRanksFailWhenTheLossOfABatchNormIsNotFinite) {
  TrainRequest request = Request("resnet18:image=32,classes=4", "run");
  request.options.batch = 4;
  request.options.slices = "2";
  request.options.lr = 1e30;
  request.options.optimizer.name = "sgd";
  request.options.clip_norm = 0;
  const Ended ended = TrainOn(2, request);
  for (const Result<TrainOutcome>& outcome : ended.outcomes)
    EXPECT_EQ(outcome.status().code(), ErrorCode::kFailed) << outcome.status().message();
}

TEST_F(RanksTest, AccumulationIsRefused) {
  TrainRequest request = Request(kMlp, "run");
  request.options.accumulate = 2;
  EXPECT_EQ(
      Refusal(2, request),
      "--accumulate is 2; --sums tree adds the slices of one batch. hint: --batch 48 --slices "
      "N, which needs no more memory than 2 batches of 24");
}

TEST_F(RanksTest, ThePlanOfARankNamesItsCollectives) {
  Result<std::unique_ptr<Backend>> backend = MakeCpuBackend(/*threads=*/1);
  ASSERT_TRUE(backend.ok());
  Machine machine = TestMachine().get();
  machine.backend = backend->get();
  machine.rank = 1;
  machine.ranks = 3;  // planned only
  TrainOptions options = Request("mlp:hidden=64,layers=1,inputs=100,classes=10", "none").options;
  options.sums = "running";
  Result<Forward> forward = LoadForward(options, options.model);
  ASSERT_TRUE(forward.ok()) << forward.status().message();
  Result<PlannedJob> job = PlanJob(options, forward->graph, nullptr, machine);
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_THAT(PlanReport("mlp", SummarizeJob(*job, job->program), Terminal{}),
              HasSubstr("  ranks: rank 1 of 3 computes 3 of 8 slices\n"
                        "  train: all_reduce of 27.9 KiB, this rank sends 55.9 KiB\n"
                        "  eval: all_reduce of 192 B, this rank sends 384 B\n"));
  const auto executor = Executor::Create(std::move(job->program), **backend);
  ASSERT_TRUE(executor.ok()) << executor.status().message();
  ASSERT_TRUE((*executor)->transfers().Initialize(0).ok());
  const Status alone = (*executor)->Run((*executor)->StepIndex("train"), 0);
  EXPECT_EQ(alone.message(), "a step of 3 ranks runs on all of them together");
}

// The first of two ranks; sums take what the table says.
Program PlanWithSums(const TrainOptions& options, GradientOverlap overlap,
                     std::vector<SumTime> sums) {
  Result<std::unique_ptr<Backend>> backend = MakeCpuBackend(/*threads=*/1);
  EXPECT_TRUE(backend.ok());
  Machine machine = TestMachine().get();
  machine.backend = backend->get();
  machine.ranks = 2;  // planned only
  machine.overlap = overlap;
  machine.sums.sums = std::move(sums);
  Result<Forward> forward = LoadForward(options, options.model);
  EXPECT_TRUE(forward.ok()) << forward.status().message();
  Result<PlannedJob> job = PlanJob(options, forward->graph, nullptr, machine);
  EXPECT_TRUE(job.ok()) << job.status().message();
  return std::move(job->program);
}

// Each bucket takes `seconds`.
double ExposedSeconds(const TrainOptions& options, GradientOverlap overlap, double seconds,
                      int64_t& buckets) {
  const Program program =
      PlanWithSums(options, overlap, {{1, seconds, seconds}, {int64_t{1} << 40, seconds, seconds}});
  buckets = CollectivesOf(program).front().count;
  return SumSeconds(*program.Find("train"));
}

TEST_F(RanksTest, AnOverlappedExchangeIsPlannedWithWhatTheStepDoesNotHide) {
  TrainOptions options = Request("mlp:hidden=400,layers=3,inputs=40,classes=5", "none").options;
  options.clip_norm = 0;
  int64_t buckets = 0;
  EXPECT_EQ(ExposedSeconds(options, GradientOverlap::kOff, 1, buckets), 1);
  EXPECT_EQ(buckets, 1);
  const double slow_s = ExposedSeconds(options, GradientOverlap::kOn, 1, buckets);
  EXPECT_GT(buckets, 2);
  EXPECT_LE(slow_s, static_cast<double>(buckets));
  EXPECT_GT(slow_s, static_cast<double>(buckets) - 0.1);  // the step takes milliseconds
  // All but the last bucket are done before their wait.
  EXPECT_LE(ExposedSeconds(options, GradientOverlap::kOn, 1e-7, buckets), 1.1e-7);
}

TEST_F(RanksTest, APlanOverlapsWhatItSaysIsFasterSo) {
  TrainOptions options = Request("mlp:hidden=400,layers=3,inputs=40,classes=5", "none").options;
  options.clip_norm = 0;
  int64_t exchanges = 0;
  // Each takes as long, however small it is: one is faster than several.
  EXPECT_EQ(ExposedSeconds(options, GradientOverlap::kPlanned, 1, exchanges), 1);
  EXPECT_EQ(exchanges, 1);
  // All but the last of several take no time of the step.
  const std::vector<SumTime> by_bytes = {{1, 1e-9, 1e-9}, {int64_t{1} << 30, 1, 1}};
  const Program beside = PlanWithSums(options, GradientOverlap::kPlanned, by_bytes);
  const Program in_line = PlanWithSums(options, GradientOverlap::kOff, by_bytes);
  EXPECT_GT(CollectivesOf(beside).front().count, 1);
  EXPECT_LT(SumSeconds(*beside.Find("train")), SumSeconds(*in_line.Find("train")));
}

TEST_F(RanksTest, RanksThatLetThePlanDecideHaveTheSameBits) {
  TrainRequest request = Request(kMlp, "alone");
  const std::string alone = MustTrain(0, request).hash();
  overlap_ = GradientOverlap::kPlanned;
  request.options.out = folder_.File("ranks");
  EXPECT_EQ(MustTrain(2, request).hash(), alone);
}

Program PlanOverlapped(const TrainOptions& options, int rank) {
  Result<std::unique_ptr<Backend>> backend = MakeCpuBackend(/*threads=*/1);
  EXPECT_TRUE(backend.ok());
  Machine machine = TestMachine().get();
  machine.backend = backend->get();
  machine.rank = rank;
  machine.ranks = 2;  // planned only
  machine.overlap = GradientOverlap::kOn;
  Result<Forward> forward = LoadForward(options, options.model);
  EXPECT_TRUE(forward.ok()) << forward.status().message();
  Result<PlannedJob> job = PlanJob(options, forward->graph, nullptr, machine);
  EXPECT_TRUE(job.ok()) << job.status().message();
  return std::move(job->program);
}

// The loss, which all updates wait for, is there when the forward pass is done; the table of
// tokens, whose gradient is the last one, is updated last.
TEST_F(RanksTest, TheLossLeavesFirstAndUpdatesFollowTheirBuckets) {
  TrainOptions options =
      Request("gpt:layers=2,hidden=64,heads=2,context=16,vocab=2000", "none").options;
  options.clip_norm = 0;
  const Program program = PlanOverlapped(options, 0);
  const StepPlan& step = *program.Find("train");
  std::vector<std::string> order;
  for (const PlannedNode& node : step.nodes) {
    if (node.choice.kernel == kTreeSumStartKernel || node.choice.kernel == kTreeSumWaitKernel) {
      const std::string first = program.persistent[static_cast<size_t>(node.sums.front())].name;
      const bool starts = node.choice.kernel == kTreeSumStartKernel;
      order.push_back((starts ? "start " : "wait ") + std::to_string(node.sums.size()) + " " +
                      first);
    } else if (node.op == "adam_update" || node.op == "softmax_cross_entropy_grad") {
      order.push_back(node.name);
    }
  }
  const auto at = [&](const std::string& what) {
    return std::find(order.begin(), order.end(), what) - order.begin();
  };
  EXPECT_EQ(order[0], "start 2 loss.slice_sum");
  EXPECT_EQ(order[1], "softmax_cross_entropy_grad");
  EXPECT_LT(at("wait 2 loss.slice_sum"), at("wait 3 lnf.weight.grad_sum"));
  EXPECT_LT(at("head.weight.updated"), at("wait 14 blocks.1.down.bias.grad_sum"));
  EXPECT_LT(at("blocks.1.qkv.weight.updated"), at("wait 12 blocks.0.ln2.weight.grad_sum"));
  EXPECT_LT(at("wait 12 blocks.0.ln2.weight.grad_sum"), at("tok.weight.updated"));
  EXPECT_LT(at("tok.weight.updated"), static_cast<std::ptrdiff_t>(order.size()));
}

// Of those that a rank waits for.
std::vector<double> GatherSeconds(const Program& program) {
  std::vector<double> seconds;
  for (const PlannedNode& node : program.Find("train")->nodes) {
    if (IsGather(node) && node.choice.kernel != kAllGatherStartKernel)
      seconds.push_back(node.modelled_s);
  }
  return seconds;
}

// Between a norm's sums and its gradient; the first convolution's comes last.
TEST_F(RanksTest, WeightGradientsAreComputedWhileOtherRanksMayBeLate) {
  TrainOptions options = Request("resnet18:image=32,classes=4", "none").options;
  const Program program = PlanWithSums(options, GradientOverlap::kOff, {{1, 1, 1}});
  const StepPlan& step = *program.Find("train");
  int64_t weights = 0, starts = 0;
  bool open = false;
  for (const PlannedNode& node : step.nodes) {
    EXPECT_FALSE(open && node.choice.kernel == kAllGatherKernel) << node.name;
    if (node.choice.kernel == kAllGatherStartKernel) {
      EXPECT_FALSE(open);
      ++starts;
      open = true;
    }
    if (node.choice.kernel == kAllGatherWaitKernel) open = false;
    weights += open && (node.op == "conv_grad_weight" || node.op == "matmul") ? 1 : 0;
  }
  EXPECT_FALSE(open);
  EXPECT_GE(weights, 16);
  EXPECT_LE(starts, weights);
}

// A gather takes a second here, or what is left of it.
TEST_F(RanksTest, AWaitIsPlannedToTakeWhatTheNodesBeforeItLeave) {
  TrainOptions options = Request("resnet18:image=32,classes=4", "none").options;
  for (const double gather_s : {1.0, 1e-9}) {
    const Program program =
        PlanWithSums(options, GradientOverlap::kOff, {{1, 2 * gather_s, 2 * gather_s}});
    double between_s = 0;
    for (const PlannedNode& node : program.Find("train")->nodes) {
      const std::string& kernel = node.choice.kernel;
      if (kernel == kAllGatherStartKernel) {
        EXPECT_EQ(node.modelled_s, 0);
        between_s = 0;
      } else if (kernel == kAllGatherWaitKernel) {
        EXPECT_LT(node.modelled_s, gather_s);
        EXPECT_LE(node.modelled_s, std::max(0.0, gather_s - between_s) + 1e-9);
      } else {
        between_s += node.modelled_s;
      }
    }
  }
}

// A bucket takes 1000 seconds here, a gather half of that, whatever left before it; so the buckets
// of the backward pass are sent beside its 20 gathers, and its kernels take nothing.
TEST_F(RanksTest, AGatherIsPlannedToPassTheBucketsThatLeftBefore) {
  TrainOptions options = Request("resnet18:image=32,classes=4", "none").options;
  options.clip_norm = 0;
  const Program program =
      PlanWithSums(options, GradientOverlap::kOn, {{1, 1e3, 1e3}, {int64_t{1} << 40, 1e3, 1e3}});
  const std::vector<double> gathers_s = GatherSeconds(program);
  ASSERT_EQ(gathers_s.size(), 40u);
  for (const double seconds : gathers_s) EXPECT_NEAR(seconds, 500, 1);
  int64_t buckets = 0;
  for (const Collective& of : CollectivesOf(program))
    buckets += of.step == "train" && of.op != "all_gather" ? of.count : 0;
  EXPECT_EQ(buckets, 8);
  EXPECT_NEAR(SumSeconds(*program.Find("train")), 21e3, 1e3);
}

// Two pieces of 128 KiB, of which 1000 seconds pass 2^20 bytes; before the first bucket nothing is.
TEST_F(RanksTest, AGatherIsPlannedBehindThePiecesThatAreOnTheirWay) {
  TrainOptions options = Request("resnet18:image=32,classes=4", "none").options;
  options.clip_norm = 0;
  const double most_s = 1e3 * (1 << 20);
  const Program program =
      PlanWithSums(options, GradientOverlap::kOn,
                   {{1, 1e-6, 1e-6}, {1 << 20, 1e3, 1e3}, {int64_t{1} << 40, most_s, most_s}});
  std::vector<double> gathers_s = GatherSeconds(program);
  for (const double seconds : gathers_s) EXPECT_LT(seconds, 250 + 50);
  const auto behind = std::count_if(gathers_s.begin(), gathers_s.end(),
                                    [](double seconds) { return seconds >= 249; });
  EXPECT_GE(behind, 10);
  EXPECT_LT(gathers_s.front(), 10);
}

// What is recomputed pays by what a rank computes, and is that of the largest share on all.
TEST_F(RanksTest, RanksOfUnequalSharesHaveTheSameKernelsAndExchangeInOneOrder) {
  for (const auto& [model, slices, shares] : {std::tuple(kGpt, "8", "7,1"),
                                              {"resnet18:image=32,classes=4", "8", "7,1"},
                                              {"resnet18:image=32,classes=4", "3", "2,1"}}) {
    TrainOptions options = Request(model, "none").options;
    options.slices = slices;
    options.shares = shares;
    const Program large = PlanOverlapped(options, 0), small = PlanOverlapped(options, 1);
    EXPECT_EQ(ExchangeOrder(large), ExchangeOrder(small)) << model;
    EXPECT_EQ(HashKernelChoices(large), HashKernelChoices(small)) << model;
    EXPECT_GT(large.arena_bytes, small.arena_bytes) << model;
  }
}

// Of the step alone, without what ranks agree on.
TEST_F(RanksTest, AStepSendsTheBytesThatItsPlanForetells) {
  struct Case {
    int ranks;
    const char* wire;
    const char* model = kMlp;
  };
  for (const auto& [ranks, wire, model] : {Case{2, "f32"},
                                           {3, "f32"},
                                           {8, "f32"},
                                           {2, "bf16"},
                                           {3, "bf16"},
                                           {3, "f32", kTwoSegments},
                                           {3, "bf16", kTwoSegments}}) {
    RunRanks(ranks, [&, wire = wire, model = model](Communicator& communicator) {
      Result<std::unique_ptr<Backend>> backend = MakeCpuBackend(/*threads=*/1);
      ASSERT_TRUE(backend.ok());
      Machine machine = TestMachine().get();
      machine.backend = backend->get();
      machine.Join(communicator);
      TrainOptions options = Request(model, "none").options;
      options.wire = wire;
      Result<Forward> forward = LoadForward(options, options.model);
      ASSERT_TRUE(forward.ok()) << forward.status().message();
      Result<PlannedJob> job = PlanJob(options, forward->graph, nullptr, machine);
      ASSERT_TRUE(job.ok()) << job.status().message();
      const std::vector<Collective> collectives = CollectivesOf(job->program);
      ASSERT_EQ(collectives.size(), 2u);  // train, eval
      EXPECT_LE(collectives[0].scratch_bytes, 2 * kSegmentBytes);
      auto executor = Executor::Create(std::move(job->program), **backend, &communicator);
      ASSERT_TRUE(executor.ok()) << executor.status().message();
      ASSERT_TRUE((*executor)->transfers().Initialize(0).ok());
      StepRunner runner(**executor, *job);
      for (int64_t step = 0; step < 3; ++step) ASSERT_TRUE(runner.Run({0.01, step, 0}).ok());
      EXPECT_EQ(communicator.sent_bytes(), 3 * collectives[0].sent_bytes);
    });
  }
}

}  // namespace
}  // namespace ridge

// Trainings on the stages of a pipeline (--mesh p=N), whose ranks are threads of the test.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "ridge/core/files.h"
#include "ridge/train/loop/ranks_fixture.h"

namespace ridge {
namespace {

using testing::HasSubstr;

constexpr char kLayers[] = "gpt:layers=3,hidden=16,heads=2,context=8,vocab=32";
constexpr char kTiedLayers[] = "gpt:layers=3,hidden=16,heads=2,context=8,vocab=32,tied=1";
constexpr char kBert[] = "bert:layers=2,hidden=16,heads=2,inner=32,tokens=8,positions=8,vocab=24";

struct Stages {
  int ranks;
  std::string schedule;
};
const std::vector<Stages> kSome = {{2, "zero-bubble"}, {3, "1f1b"}, {2, "interleaved:2"}};
// A sanitizer looks at the code, and not at the numbers.
#ifdef RIDGE_SANITIZED_MEMORY
const std::vector<Stages>& kAll = kSome;
#else
const std::vector<Stages> kAll = {{2, "gpipe"},       {2, "1f1b"},          {2, "zero-bubble"},
                                  {3, "1f1b"},        {2, "interleaved:2"}, {3, "gpipe"},
                                  {3, "zero-bubble"}, {3, "interleaved:2"}};
#endif

class PipelineRanksTest : public RanksTest {
 protected:
  TrainRequest StagesRequest(const std::string& model, const Stages& on) {
    TrainRequest request = Request(model, fmt::format("run-{}", runs_++));
    request.options.sums = "running";
    request.options.slices = "1";
    request.options.validation = "0.02";
    request.options.batch = 4;
    request.options.accumulate = 6;
    request.options.steps = 3;
    request.options.eval_every = 3;
    request.options.passes = passes_;
    if (on.ranks == 0) return request;
    request.options.mesh = fmt::format("p={}", on.ranks);
    request.options.pipeline = on.schedule;
    return request;
  }

  Ended TrainStages(const std::string& model, const Stages& on) {
    return MustTrain(on.ranks, StagesRequest(model, on));
  }
  Ended TrainAlone(const std::string& model) { return TrainStages(model, {0, ""}); }

  // Ranks are late at random, so nothing may depend on when a message comes.
  void ExpectTheBitsOf(const Ended& alone, const std::string& model,
                       const std::vector<Stages>& pipelines) {
    for (const Stages& on : pipelines) {
      const Ended ended = TrainStages(model, on);
      const std::string what = fmt::format("{} p={} {}", model, on.ranks, on.schedule);
      EXPECT_EQ(ended.hash(), alone.hash()) << what;
      EXPECT_EQ(ended.recorders[0].losses, alone.recorders[0].losses) << what;
      ExpectTheSameEvaluations(ended, alone);
      for (const RankNumbers& rank : ended.first().summary.ranks)
        EXPECT_EQ(rank.arena_bytes, rank.planned_arena_bytes) << what;
    }
  }

  // All pipelines have the same bits, and train as one rank does but for roundings.
  void ExpectTheSameTraining(const std::string& model) {
    const Ended alone = TrainAlone(model), first = TrainStages(model, {2, "gpipe"});
    ExpectTheBitsOf(first, model, kSome);
    for (size_t i = 0; i < alone.recorders[0].losses.size(); ++i)
      EXPECT_NEAR(first.recorders[0].losses[i], alone.recorders[0].losses[i], 1e-4);
  }

  std::string passes_;

 private:
  int runs_ = 0;
};

TEST_F(PipelineRanksTest, AGptHasTheBitsOfOneRank) {
  ExpectTheBitsOf(TrainAlone(kLayers), kLayers, kAll);
}

TEST_F(PipelineRanksTest, ABertHasTheBitsOfOneRank) {
  ExpectTheBitsOf(TrainAlone(kBert), kBert, kSome);
}

// Values that cross a border are row-major, and the kernels on both sides read them so.
TEST_F(PipelineRanksTest, ConvolutionsHaveTheBitsOfOneRankInTheSameLayouts) {
  passes_ = "-layout";
  const std::string net = folder_.Write("net.ridge", kNormNet);
  ExpectTheBitsOf(TrainAlone(net), net, kSome);
}

TEST_F(PipelineRanksTest, ConvolutionsInOtherLayoutsHaveTheSameBitsInAllPipelines) {
  ExpectTheSameTraining(folder_.Write("net.ridge", kNormNet));
}

// Its two ends have a sum of gradients each, so they are added in another order.
TEST_F(PipelineRanksTest, TiedWeightsHaveTheSameBitsInAllPipelines) {
  ExpectTheSameTraining(kTiedLayers);
}

TEST_F(PipelineRanksTest, ACheckpointGoesOnWithTheSameBits) {
  const std::string whole = TrainStages(kTiedLayers, {2, "1f1b"}).hash();
  TrainRequest request = StagesRequest(kTiedLayers, {2, "1f1b"});
  request.options.checkpoint_every = 1;
  request.kill_after_step = 2;
  MustTrain(2, request);
  request.kill_after_step = -1;
  request.resume = true;
  const Ended ended = MustTrain(2, request);
  EXPECT_EQ(ended.recorders[0].start.step, 2);
  EXPECT_EQ(ended.hash(), whole);
}

TEST_F(PipelineRanksTest, OtherStagesAndOneRankGoOnWithItsCheckpoint) {
  const std::string whole = TrainStages(kLayers, {2, "1f1b"}).hash();
  for (const int ranks : {0, 3}) {
    TrainRequest request = StagesRequest(kLayers, {2, "1f1b"});
    request.preempt_after_step = 2;
    MustTrain(2, request);
    request.preempt_after_step = -1;
    request.resume = true;
    request.options.mesh = ranks == 0 ? "" : "p=3";
    if (ranks == 0) request.options.pipeline = "";
    request.given = {"mesh", "pipeline"};
    EXPECT_THAT(TrainOn(ranks, request).outcomes[0].status().message(),
                HasSubstr("the run has used --mesh p=2"));
    request.allow_different = true;
    const Ended ended = MustTrain(ranks, request);
    EXPECT_EQ(ended.recorders[0].start.step, 2);
    EXPECT_EQ(ended.hash(), whole);
  }
}

TEST_F(PipelineRanksTest, AllRanksEndWhereALossIsNotFinite) {
  TrainRequest request = StagesRequest(kLayers, {2, "1f1b"});
  request.options.lr = 1e30;
  request.options.clip_norm = 0;
  request.options.optimizer.name = "sgd";
  const Ended ended = TrainOn(2, request);
  for (const Result<TrainOutcome>& outcome : ended.outcomes) {
    EXPECT_EQ(outcome.status().code(), ErrorCode::kFailed);
    EXPECT_THAT(outcome.status().message(), HasSubstr("loss is nan in micro batch "));
  }
}

TEST_F(PipelineRanksTest, RefusesWhatIsNoPipeline) {
  const auto refusal = [&](const std::string& mesh, int64_t accumulate) {
    TrainRequest request = StagesRequest(kLayers, {2, ""});
    request.options.mesh = mesh;
    request.options.accumulate = accumulate;
    return Refusal(2, request);
  };
  EXPECT_EQ(refusal("p=2", 1),
            "--accumulate is 1; a pipeline needs 2 micro batches or more. hint: --accumulate 4");
  EXPECT_EQ(refusal("p=2,d=2", 4),
            "--mesh p=2,d=2: axis p trains alone, one device a stage. hint: --mesh p=2");
  EXPECT_EQ(refusal("p=3", 4), "--mesh p=3 is of 3 devices; the job has 2. hint: --devices 3");
  EXPECT_EQ(refusal("p=1", 4), "--mesh p=1: one stage is no pipeline. hint: leave --mesh out");
}

}  // namespace
}  // namespace ridge

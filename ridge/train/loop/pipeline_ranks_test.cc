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
constexpr char kBert[] =
    "bert:layers=2,hidden=16,heads=2,inner=32,tokens=8,positions=8,vocab=24";
const std::vector<std::string> kSchedules = {"gpipe", "1f1b", "zero-bubble", "interleaved:2"};

class PipelineRanksTest : public RanksTest {
 protected:
  TrainRequest StagesRequest(const std::string& model, int stages, const std::string& schedule) {
    TrainRequest request = Request(model, fmt::format("run-{}", runs_++));
    request.options.sums = "running";
    request.options.slices = "1";
    request.options.batch = 4;
    request.options.accumulate = 6;
    request.options.steps = 4;
    request.options.eval_every = 2;
    if (stages == 0) return request;
    request.options.mesh = fmt::format("p={}", stages);
    request.options.pipeline = schedule;
    return request;
  }

  Ended TrainStages(const std::string& model, int stages, const std::string& schedule) {
    return MustTrain(stages, StagesRequest(model, stages, schedule));
  }

  // Every schedule, on two and on three ranks.
  void ExpectTheBitsOf(const Ended& alone, const std::string& model, int most_stages = 3) {
    for (const std::string& schedule : kSchedules) {
      for (int stages = 2; stages <= most_stages; ++stages) {
        const Ended ended = TrainStages(model, stages, schedule);
        const std::string what = fmt::format("{} p={} {}", model, stages, schedule);
        EXPECT_EQ(ended.hash(), alone.hash()) << what;
        EXPECT_EQ(ended.recorders[0].losses, alone.recorders[0].losses) << what;
        ExpectTheSameEvaluations(ended, alone);
        for (const RankNumbers& rank : ended.first().summary.ranks)
          EXPECT_EQ(rank.arena_bytes, rank.planned_arena_bytes) << what;
      }
    }
  }

 private:
  int runs_ = 0;
};

TEST_F(PipelineRanksTest, AGptHasTheBitsOfOneRank) {
  ExpectTheBitsOf(TrainStages(kLayers, 0, ""), kLayers);
}

TEST_F(PipelineRanksTest, ABertHasTheBitsOfOneRank) {
  ExpectTheBitsOf(TrainStages(kBert, 0, ""), kBert, /*most_stages=*/2);
}

TEST_F(PipelineRanksTest, ABatchNormHasTheBitsOfOneRank) {
  const std::string net = folder_.Write("net.ridge", kNormNet);
  ExpectTheBitsOf(TrainStages(net, 0, ""), net);
}

// Its two ends have a sum of gradients each, so they are added in another order.
TEST_F(PipelineRanksTest, TiedWeightsHaveTheSameBitsInAllPipelines) {
  const Ended alone = TrainStages(kTiedLayers, 0, "");
  const Ended first = TrainStages(kTiedLayers, 2, "gpipe");
  ExpectTheBitsOf(first, kTiedLayers);
  for (size_t i = 0; i < alone.recorders[0].losses.size(); ++i)
    EXPECT_NEAR(first.recorders[0].losses[i], alone.recorders[0].losses[i], 1e-4);
}

TEST_F(PipelineRanksTest, LateRanksChangeNoBit) {
  const std::string first = TrainStages(kLayers, 3, "zero-bubble").hash();
  EXPECT_EQ(TrainStages(kLayers, 3, "zero-bubble").hash(), first);
}

TEST_F(PipelineRanksTest, ACheckpointGoesOnWithTheSameBits) {
  const std::string whole = TrainStages(kTiedLayers, 2, "1f1b").hash();
  TrainRequest request = StagesRequest(kTiedLayers, 2, "1f1b");
  request.options.checkpoint_every = 2;
  request.kill_after_step = 3;
  MustTrain(2, request);
  request.kill_after_step = -1;
  request.resume = true;
  const Ended ended = MustTrain(2, request);
  EXPECT_EQ(ended.recorders[0].start.step, 2);
  EXPECT_EQ(ended.hash(), whole);
}

TEST_F(PipelineRanksTest, OtherStagesAndOneRankGoOnWithItsCheckpoint) {
  const std::string whole = TrainStages(kLayers, 2, "1f1b").hash();
  for (const int ranks : {0, 3}) {
    TrainRequest request = StagesRequest(kLayers, 2, "1f1b");
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
  TrainRequest request = StagesRequest(kLayers, 2, "1f1b");
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
    TrainRequest request = StagesRequest(kLayers, 2, "");
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

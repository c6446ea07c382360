// Trainings on the ranks of a mesh (--mesh, --shard), which are threads of the test.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>

#include "ridge/core/files.h"
#include "ridge/train/loop/ranks_fixture.h"

namespace ridge {
namespace {

using testing::HasSubstr;

constexpr char kHeads[] = "gpt:layers=1,hidden=16,heads=2,context=8,vocab=32";

struct OnMesh {
  const char *mesh, *shard;
  int ranks;
};

class MeshRanksTest : public RanksTest {
 protected:
  TrainRequest MeshRequest(const std::string& model, const OnMesh& on) {
    TrainRequest request = Request(model, fmt::format("run-{}", runs_++));
    request.options.sums = "running";
    request.options.slices = "auto";
    request.options.steps = 8;
    request.options.eval_every = 4;
    request.options.mesh = on.mesh;
    request.options.shard = on.shard;
    return request;
  }

  Ended TrainOnMesh(const std::string& model, const OnMesh& on) {
    return MustTrain(on.ranks, MeshRequest(model, on));
  }

  // Losses and evaluations of one rank, but for the rounding of sums.
  void ExpectTheSameTraining(const std::string& model, const std::vector<OnMesh>& meshes) {
    const Ended alone = TrainOnMesh(model, {"", "", 0});
    ASSERT_EQ(alone.recorders[0].losses.size(), 8u);
    for (const OnMesh& on : meshes) {
      const Ended ended = TrainOnMesh(model, on);
      const std::string what = std::string(on.mesh) + " " + on.shard;
      for (size_t i = 0; i < 8; ++i)
        EXPECT_NEAR(ended.recorders[0].losses[i], alone.recorders[0].losses[i], 1e-4) << what;
      for (size_t i = 0; i < 2; ++i) {
        const EvalResult& now = ended.recorders[0].evaluations[i].result;
        const EvalResult& then = alone.recorders[0].evaluations[i].result;
        EXPECT_NEAR(now.loss, then.loss, 1e-4) << what;
        EXPECT_EQ(now.samples, then.samples) << what;
        EXPECT_EQ(now.metrics.size(), then.metrics.size()) << what;
      }
      ExpectPlanned(ended, what);
    }
  }

  static void ExpectPlanned(const Ended& ended, const std::string& what) {
    for (const RankNumbers& rank : ended.first().summary.ranks)
      EXPECT_EQ(rank.arena_bytes, rank.planned_arena_bytes) << what;
  }

 private:
  int runs_ = 0;
};

TEST_F(MeshRanksTest, AGptTrainsAsOnOneRank) {
  ExpectTheSameTraining(kHeads, {{"d=3", "zero1", 3},
                                 {"d=2", "zero2", 2},
                                 {"t=2", "sequence", 2},
                                 {"d=2,t=2", "", 4},
                                 {"d=2,t=2", "zero3,sequence", 4}});
}

TEST_F(MeshRanksTest, ACnnTrainsAsOnOneRank) {
  ExpectTheSameTraining(kCnn, {{"d=2", "", 2}, {"d=3", "zero3", 3}});
}

TEST_F(MeshRanksTest, ABatchNormHasTheStatisticsOfTheBatch) {
  ExpectTheSameTraining(folder_.Write("net.ridge", kNormNet),
                        {{"d=2", "", 2}, {"d=3", "zero3", 3}});
}

// A sum over the same ranks, whoever keeps it.
TEST_F(MeshRanksTest, AllStagesOfZeroHaveTheBitsOfDataParallel) {
  for (const char* model : {kHeads, kMlp}) {
    const std::string whole = TrainOnMesh(model, {"d=2", "", 2}).hash();
    for (const char* stage : {"zero1", "zero2", "zero3"})
      EXPECT_EQ(TrainOnMesh(model, {"d=2", stage, 2}).hash(), whole) << stage;
  }
}

TEST_F(MeshRanksTest, LateRanksChangeNoBit) {
  const OnMesh on = {"d=2,t=2", "zero2,sequence", 4};
  const std::string first = TrainOnMesh(kHeads, on).hash();
  TrainRequest again = MeshRequest(kHeads, on);
  again.options.out = folder_.File("again");
  EXPECT_EQ(MustTrain(on.ranks, again).hash(), first);
}

TEST_F(MeshRanksTest, ACheckpointGoesOnWithTheSameBits) {
  const OnMesh on = {"d=2,t=2", "zero3", 4};
  const std::string whole = TrainOnMesh(kHeads, on).hash();
  TrainRequest request = MeshRequest(kHeads, on);
  request.options.out = folder_.File("parts");
  request.options.checkpoint_every = 3;
  request.kill_after_step = 5;
  MustTrain(on.ranks, request);
  request.kill_after_step = -1;
  request.resume = true;
  const Ended ended = MustTrain(on.ranks, request);
  EXPECT_EQ(ended.recorders[0].start.step, 3);
  EXPECT_EQ(ended.hash(), whole);
}

TEST_F(MeshRanksTest, AnotherMeshReadsTheCheckpointIfOtherBitsAreAllowed) {
  TrainRequest request = MeshRequest(kHeads, {"d=2,t=2", "zero3", 4});
  request.options.out = folder_.File("parts");
  request.preempt_after_step = 4;
  MustTrain(4, request);
  request.preempt_after_step = -1;
  request.resume = true;
  request.options.mesh = "t=2";
  request.options.shard = "sequence";
  request.given = {"mesh", "shard"};
  EXPECT_THAT(TrainOn(2, request).outcomes[0].status().message(),
              HasSubstr("resuming with --mesh t=2 --shard sequence; the run has used --mesh "
                        "d=2,t=2 --shard zero3: the result would not be bit-identical. hint: "
                        "--allow-different"));
  request.allow_different = true;
  const Ended other = MustTrain(2, request);
  EXPECT_EQ(other.recorders[0].start.step, 4);
  const Ended alone = TrainOnMesh(kHeads, {"", "", 0});
  EXPECT_NEAR(other.recorders[0].losses.back(), alone.recorders[0].losses.back(), 1e-4);
}

TEST_F(MeshRanksTest, AMeshIsOfAllRanks) {
  TrainRequest request = MeshRequest(kHeads, {"d=2,t=2", "", 2});
  EXPECT_EQ(Refusal(2, request),
            "--mesh d=2,t=2 is of 4 devices; the job has 2. hint: --devices 4");
}

}  // namespace
}  // namespace ridge

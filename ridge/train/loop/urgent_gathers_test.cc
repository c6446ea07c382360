// Gathers of batch norms beside buckets of gradients: they pass, and what fails ends everything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "ridge/plan/tree_sums.h"
#include "ridge/train/job/step_runner.h"
#include "ridge/train/load/forward.h"
#include "ridge/train/loop/ranks_fixture.h"

namespace ridge {
namespace {

using testing::HasSubstr;

// What becomes of the exchanges of a rank: of buckets, and of gathers.
struct Interference {
  std::function<Status()> bucket = [] { return Status(); };
  std::function<Status()> gather = [] { return Status(); };
  std::atomic<int64_t> gathers{0};  // that have ended
};

// Asks before each exchange.
class MeddledCommunicator : public Communicator {
 public:
  MeddledCommunicator(Communicator& inner, Interference& with)
      : MeddledCommunicator(inner, with, /*urgent=*/false) {
    urgent_.reset(new MeddledCommunicator(*inner.urgent(), with, /*urgent=*/true));
  }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  int64_t sent_bytes() const override { return inner_.sent_bytes(); }
  Communicator* urgent() override { return urgent_.get(); }
  void Name(const char* collective) override { is_sum_ = collective != nullptr; }
  Status Exchange(const std::vector<std::span<const std::byte>>& sends,
                  const std::vector<std::span<std::byte>>& receives) override {
    if (is_urgent_) {
      RIDGE_RETURN_IF_ERROR(with_.gather());
    } else if (is_sum_) {
      RIDGE_RETURN_IF_ERROR(with_.bucket());
    }
    RIDGE_RETURN_IF_ERROR(inner_.Exchange(sends, receives));
    with_.gathers += is_urgent_ ? 1 : 0;
    return Status();
  }
  Status Begin(const std::vector<std::span<const std::byte>>& sends,
               const std::vector<std::span<std::byte>>& receives) override {
    RIDGE_RETURN_IF_ERROR(with_.gather());
    return inner_.Begin(sends, receives);
  }
  Status Finish() override {
    RIDGE_RETURN_IF_ERROR(inner_.Finish());
    ++with_.gathers;
    return Status();
  }

 private:
  MeddledCommunicator(Communicator& inner, Interference& with, bool urgent)
      : inner_(inner), with_(with), is_urgent_(urgent) {}

  Communicator& inner_;
  Interference& with_;
  const bool is_urgent_;
  bool is_sum_ = false;  // and no agreement
  std::unique_ptr<MeddledCommunicator> urgent_;
};

class UrgentGathersTest : public RanksTest {
 protected:
  // Of a step with two norms on three ranks.
  static constexpr int64_t kGathers = 4;

  // By rank: how its step ended.
  std::vector<Status> RunStep(const std::function<void(int rank, Interference&)>& prepare) {
    std::vector<Status> ended(3, Status(ErrorCode::kInternal, "not run"));
    const std::string model = folder_.Write("net.ridge", kNormNet);
    RunRanks(3, [&](Communicator& ranks) {
      Interference with;
      prepare(ranks.rank(), with);
      MeddledCommunicator meddled(ranks, with);
      ended[static_cast<size_t>(ranks.rank())] = StepOn(meddled, model);
    });
    return ended;
  }

 private:
  Status StepOn(Communicator& ranks, const std::string& model) {
    RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeCpuBackend(/*threads=*/1));
    Machine machine = TestMachine().get();
    machine.backend = backend.get();
    machine.Join(ranks);
    machine.overlap = GradientOverlap::kOn;
    const TrainOptions options = Request(model, "none").options;
    RIDGE_ASSIGN_OR_RETURN(Forward forward, LoadForward(options, model));
    RIDGE_ASSIGN_OR_RETURN(PlannedJob job, PlanJob(options, forward.graph, nullptr, machine));
    const int64_t planned_bytes = PlannedBytes(job.program);
    RIDGE_ASSIGN_OR_RETURN(const auto executor,
                           Executor::Create(std::move(job.program), *backend, &ranks));
    RIDGE_RETURN_IF_ERROR(executor->transfers().Initialize(0));
    const Status ran = StepRunner(*executor, job).Run({0.01, 0, 0}).status();
    EXPECT_TRUE(!ran.ok() || ranks.sent_bytes() == planned_bytes) << ranks.sent_bytes();
    return ran;
  }

  static int64_t PlannedBytes(const Program& program) {
    int64_t bytes = 0, gathers = 0;
    for (const Collective& of : CollectivesOf(program)) {
      if (of.step != "train") continue;
      gathers += of.op == "all_gather" ? of.count : 0;
      bytes += of.sent_bytes;
    }
    EXPECT_EQ(gathers, kGathers);
    return bytes;
  }
};

// The bucket of the loss leaves before the backward pass, whose gathers do not need it.
TEST_F(UrgentGathersTest, AGatherDoesNotWaitForTheBucketThatIsUnderWay) {
  std::atomic<int> in_vain{0};
  const std::vector<Status> ended = RunStep([&](int, Interference& with) {
    with.bucket = [&] {
      const double end_s = MonotonicSeconds() + 10;
      while (with.gathers < kGathers) {
        if (MonotonicSeconds() > end_s) return ++in_vain, Status();
        std::this_thread::yield();
      }
      return Status();
    };
  });
  for (const Status& status : ended) EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(in_vain, 0);
}

TEST_F(UrgentGathersTest, AGatherThatFailsEndsTheStepOfAllRanks) {
  const std::vector<Status> ended = RunStep([](int rank, Interference& with) {
    with.gather = [rank, &with] {
      if (rank != 1 || with.gathers < 3) return Status();
      return Status(ErrorCode::kUnavailable, "the gather fails");
    };
  });
  EXPECT_EQ(ended[1].message(), "the gather fails");
  for (const size_t other : {0, 2})
    EXPECT_EQ(ended[other].message(), "rank 1 has left the job") << other;
}

TEST_F(UrgentGathersTest, ABucketThatFailsBesideAGatherEndsTheStepOfAllRanks) {
  const std::vector<Status> ended = RunStep([](int rank, Interference& with) {
    with.bucket = [rank] {
      return rank == 1 ? Status(ErrorCode::kUnavailable, "the bucket fails") : Status();
    };
  });
  EXPECT_EQ(ended[1].message(), "the bucket fails");
  for (const size_t other : {0, 2})
    EXPECT_EQ(ended[other].message(), "rank 1 has left the job") << other;
}

// Buckets beside gathers, late ranks among them.
TEST_F(UrgentGathersTest, ANormBesideTheStepHasTheSameBitsOnManyRanks) {
  TrainRequest request = Request(folder_.Write("net.ridge", kNormNet), "alone");
  request.options.steps = 4;
  request.options.eval_every = 0;
  const std::string alone = MustTrain(0, request).hash();
  overlap_ = GradientOverlap::kOn;
  for (const int ranks : {2, 3, 8}) {
    request.options.out = folder_.File("ranks" + std::to_string(ranks));
    EXPECT_EQ(MustTrain(ranks, request).hash(), alone) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace ridge

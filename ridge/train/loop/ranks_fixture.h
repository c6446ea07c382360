// Fixture of trainings on several ranks, which are threads of the test.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/dist/test_ranks.h"
#include "ridge/train/loop/test_support.h"

namespace ridge {

inline constexpr char kMlp[] = "mlp:hidden=24,layers=2,inputs=12,classes=5";
inline constexpr char kCnn[] = "cnn:filters=4";
inline constexpr char kGpt[] = "gpt:layers=1,hidden=16,heads=2,context=8,vocab=32";
inline constexpr int kMostDelay_us = 200;

// A sanitizer looks at the code, and not at the numbers.
#ifdef RIDGE_SANITIZED_MEMORY
inline const std::vector<std::string> kSlices = {"8"};
inline const std::vector<int> kRanks = {1, 3};
#else
inline const std::vector<std::string> kSlices = {"8", "12"};
inline const std::vector<int> kRanks = {1, 2, 3, 4, 6, 8};
#endif

// What all ranks of a job had at its end.
struct Ended {
  std::vector<Result<TrainOutcome>> outcomes;  // by rank
  std::vector<Recorder> recorders;
  const TrainOutcome& first() const { return *outcomes.front(); }
  std::string hash() const { return first().summary.parameters_sha256; }
};

class RanksTest : public testing::Test {
 protected:
  // 24 samples a batch are cut into 8 and into 12 slices.
  TrainRequest Request(const std::string& model, const std::string& out) {
    TrainRequest request;
    request.options.model = model;
    request.options.data = "synthetic";
    request.options.validation = "0.1";
    request.options.batch = 24;
    request.options.slices = "8";
    request.options.sums = "tree";
    request.options.steps = 30;
    request.options.eval_every = 10;
    request.options.clip_norm = 1;
    request.options.out = folder_.File(out);
    request.rehearse_s = 0;
    return request;
  }

  // On so many ranks; 0: in a process that knows of none.
  Ended TrainOn(int ranks, const TrainRequest& request) {
    const int recorders = std::max(1, ranks);
    Ended ended;
    ended.recorders.resize(static_cast<size_t>(recorders));
    ended.outcomes.resize(static_cast<size_t>(recorders), Status(ErrorCode::kInternal, "not run"));
    const auto train = [&](Communicator* communicator) {
      const auto rank = static_cast<size_t>(communicator == nullptr ? 0 : communicator->rank());
      Result<std::unique_ptr<Backend>> backend =
          MakeCpuBackend(/*threads=*/1, ConvKernels::kDirect);
      ASSERT_TRUE(backend.ok()) << backend.status().message();
      Machine machine = TestMachine().get();
      machine.backend = backend->get();
      if (communicator != nullptr) machine.Join(*communicator);
      machine.overlap = overlap_;
      ended.outcomes[rank] = Train(RequestOf(rank, request), machine, ended.recorders[rank]);
    };
    if (ranks == 0) {
      train(nullptr);
    } else {
      RunRanks(
          ranks, [&](Communicator& communicator) { train(&communicator); }, kMostDelay_us);
    }
    return ended;
  }

  virtual TrainRequest RequestOf(size_t /*rank*/, const TrainRequest& request) { return request; }

  Ended MustTrain(int ranks, const TrainRequest& request) {
    Ended ended = TrainOn(ranks, request);
    for (const Result<TrainOutcome>& outcome : ended.outcomes)
      EXPECT_TRUE(outcome.ok()) << ranks << " ranks: " << outcome.status().message();
    return ended;
  }

  std::string Refusal(int ranks, const TrainRequest& request) {
    const Ended ended = TrainOn(ranks, request);
    for (const Result<TrainOutcome>& outcome : ended.outcomes)
      EXPECT_EQ(outcome.status().message(), ended.outcomes[0].status().message());
    EXPECT_FALSE(std::filesystem::exists(request.options.out));
    return ended.outcomes[0].status().message();
  }

  void ExpectTheSameBits(const std::string& model) {
    for (const std::string& slices : kSlices) {
      TrainRequest request = Request(model, "alone-" + slices);
      request.options.slices = slices;
      const Ended alone = MustTrain(0, request);
      ASSERT_EQ(alone.recorders[0].losses.size(), 30u);
      ASSERT_EQ(alone.recorders[0].evaluations.size(), 3u);
      for (const int ranks : kRanks) {
        request.options.out = folder_.File("ranks-" + slices + "-" + std::to_string(ranks));
        const Ended ended = MustTrain(ranks, request);
        for (const Result<TrainOutcome>& outcome : ended.outcomes)
          EXPECT_EQ(outcome->summary.parameters_sha256, alone.hash()) << ranks << " ranks";
        EXPECT_EQ(ended.recorders[0].losses, alone.recorders[0].losses);
        ExpectTheSameEvaluations(ended, alone);
      }
    }
  }

  static void ExpectTheSameEvaluations(const Ended& ended, const Ended& alone) {
    const std::vector<EvaluationReport>&now = ended.recorders[0].evaluations,
          &then = alone.recorders[0].evaluations;
    ASSERT_EQ(now.size(), then.size());
    for (size_t i = 0; i < then.size(); ++i) {
      EXPECT_EQ(now[i].result.loss, then[i].result.loss);
      EXPECT_EQ(now[i].result.accuracy, then[i].result.accuracy);
      EXPECT_EQ(now[i].result.samples, then[i].result.samples);
      EXPECT_EQ(now[i].result.metrics, then[i].result.metrics);
    }
  }

  // As `alone` for each of these --shares.
  void ExpectTheSameBits(const Ended& alone, TrainRequest request,
                         const std::vector<std::string>& shares) {
    for (const std::string& given : shares) {
      const auto ranks = static_cast<int>(ParseShares(given)->parts.size());
      request.options.shares = given;
      request.options.out = folder_.File("shares-" + given);
      std::filesystem::remove_all(request.options.out);
      const Ended ended = MustTrain(ranks, request);
      for (const Result<TrainOutcome>& outcome : ended.outcomes)
        EXPECT_EQ(outcome->summary.parameters_sha256, alone.hash()) << given;
      EXPECT_EQ(ended.recorders[0].losses, alone.recorders[0].losses) << given;
      ExpectTheSameEvaluations(ended, alone);
    }
  }

  TempFolder folder_;
  GradientOverlap overlap_ = GradientOverlap::kOff;
};

}  // namespace ridge

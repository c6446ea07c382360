// Batches that cross to the GPU beside the step that runs.
#include <algorithm>
#include <cstring>

#include "ridge/backend/reference/reference_backend.h"
#include "ridge/graph/builder.h"
#include "ridge/plan/planner.h"
#include "ridge/runtime/executor.h"
#include "tests/fake_cuda/test_backend.h"

namespace ridge::fake_cuda {
namespace {

constexpr int64_t kCount = 1000;
const std::vector<std::string> kInputs = {"x"};

// y = 2 x
class Doubling {
 public:
  explicit Doubling(Settings settings, int64_t count = kCount)
      : count_(count),
        gpu_(std::move(settings)),
        reference_(MakeReferenceBackend()),
        backend_(MakeCudaBackend(*reference_, gpu_)) {
    GraphBuilder b("doubling");
    const Value x = b.Input("x", {DType::kF32, {count_}});
    b.Output("y", x + x);
    auto graph = b.Build();
    RIDGE_CHECK(graph.ok(), "it is a graph");
    auto program =
        PlanProgram("doubling", {{"run", std::move(*graph)}}, *backend_, backend_->nominal(), {});
    RIDGE_CHECK(program.ok(), program.status().message());
    auto executor = Executor::Create(std::move(*program), *backend_);
    RIDGE_CHECK(executor.ok(), executor.status().message());
    executor_ = std::move(*executor);
    RIDGE_CHECK(executor_->transfers().Initialize(0).ok(), "inputs are zeros");
  }

  void Fill(int slot, float value) {
    auto* to = static_cast<float*>(executor_->transfers().Input("x", slot));
    std::fill(to, to + count_, value);
  }
  // What a run on the slot makes; -1 where its elements differ.
  float Run(int slot) {
    EXPECT_TRUE(executor_->Run(/*step=*/0, slot).ok());
    const Result<const void*> y = executor_->transfers().Output(0, "y");
    EXPECT_TRUE(y.ok());
    std::vector<float> made(static_cast<size_t>(count_));
    std::memcpy(made.data(), *y, made.size() * sizeof(float));
    return made == std::vector<float>(made.size(), made[0]) ? made[0] : -1;
  }
  Transfers& transfers() { return executor_->transfers(); }
  Stream& beside() { return gpu_.device->stream(1); }

 private:
  const int64_t count_;
  const FakeGpu gpu_;
  const std::unique_ptr<Backend> reference_, backend_;
  std::unique_ptr<Executor> executor_;
};

TEST(UploadAhead, TheNextRunOfTheSlotWaitsForItAndUploadsNothing) {
  for (const char* lazy : {"0", "1"}) {
    Doubling doubling(
        Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "200"}, {"RIDGE_FAKE_CUDA_LAZY", lazy}});
    ASSERT_TRUE(doubling.transfers().uploads_ahead());
    for (int round = 1; round <= 6; ++round) {
      const int slot = round % 2;
      doubling.Fill(slot, static_cast<float>(round));
      doubling.transfers().UploadAhead(slot, kInputs);
      EXPECT_EQ(doubling.Run(slot), static_cast<float>(2 * round)) << lazy;
    }
    doubling.Fill(0, 7);
    doubling.transfers().UploadAhead(0, kInputs);
    ASSERT_TRUE(doubling.beside().Synchronize().ok());
    doubling.Fill(0, 8);  // the host's bytes alone
    EXPECT_EQ(doubling.Run(0), 14);
    EXPECT_EQ(doubling.Run(0), 14);  // it stays there
    EXPECT_EQ(doubling.Run(1), 10);
    doubling.transfers().UploadAhead(0, kInputs);
    EXPECT_EQ(doubling.Run(0), 16);
  }
}

TEST(UploadAhead, InLineEveryRunUploadsWhatTheHostHas) {
  Doubling doubling(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "200"}});
  doubling.transfers().UploadInLine();
  ASSERT_FALSE(doubling.transfers().uploads_ahead());
  for (const float value : {1.0F, 2.0F}) {
    doubling.Fill(0, value);
    doubling.transfers().UploadAhead(0, kInputs);
    EXPECT_EQ(doubling.Run(0), 2 * value);
  }
}

// By the device's clock: seconds that the host needs do not count.
TEST(InputWait, IsTheCopyThatTheStepWaitsFor) {
  constexpr int64_t kLarge = int64_t{1} << 22;  // 16 MiB
  Doubling doubling(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"}}, kLarge);
  const auto least = [&](bool crosses) {
    double wait_s = 1e9;
    for (int round = 0; round < 5; ++round) {
      if (crosses) doubling.transfers().UploadAhead(0, kInputs);
      EXPECT_TRUE(doubling.beside().Synchronize().ok());
      doubling.Run(0);
      wait_s = std::min(wait_s, doubling.transfers().input_wait_s());
    }
    return wait_s;
  };
  const double in_line_s = least(/*crosses=*/false), crossed_s = least(/*crosses=*/true);
  EXPECT_GT(in_line_s, 0);
  EXPECT_LT(crossed_s, in_line_s / 4);
}

TEST(UploadAhead, WhatIsWrittenLaterTakesThePlaceOfWhatCrossed) {
  Doubling doubling(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "200"}});
  doubling.Fill(1, 1);
  doubling.transfers().UploadAhead(1, kInputs);
  ASSERT_TRUE(doubling.beside().Synchronize().ok());
  doubling.Fill(1, 2);
  doubling.transfers().UploadAhead(1, kInputs);
  EXPECT_EQ(doubling.Run(1), 4);
  doubling.Fill(1, 3);
  doubling.transfers().UploadAhead(1, kInputs);
  ASSERT_TRUE(doubling.transfers().Initialize(0).ok());
  EXPECT_EQ(doubling.Run(1), 0);
}

}  // namespace
}  // namespace ridge::fake_cuda

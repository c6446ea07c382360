#include "ridge/train/store/run_difference.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

CheckpointState StateWith(std::vector<std::string> libraries) {
  CheckpointState state;
  state.cpu = "cuda-nvidia-h200";
  state.libraries = std::move(libraries);
  return state;
}

TEST(RunDifferenceTest, NamesTheLibrariesThatChanged) {
  const CheckpointState then = StateWith({"NVRTC 13.0", "cuBLASLt 13.1.0", "cuDNN 9.19.0"});
  EXPECT_EQ(RunDifference(then, then), "");
  EXPECT_EQ(RunDifference(StateWith({"NVRTC 13.0", "cuBLASLt 13.2.0", "cuDNN 9.20.0"}), then),
            "cuBLASLt 13.2.0, cuDNN 9.20.0; the run has used cuBLASLt 13.1.0, cuDNN 9.19.0");
  EXPECT_EQ(RunDifference(StateWith({"NVRTC 13.0", "cuBLASLt 13.1.0"}), then),
            "no other library; the run has used cuDNN 9.19.0");
  EXPECT_EQ(RunDifference(then, StateWith({"NVRTC 13.0", "cuBLASLt 13.1.0"})),
            "cuDNN 9.19.0; the run has used no other library");
}

TEST(RunDifferenceTest, NamesADriverOfAnotherCuda) {
  const CheckpointState then = StateWith({"driver of CUDA 13.0", "NVRTC 13.0"});
  EXPECT_EQ(RunDifference(then, then), "");
  EXPECT_EQ(RunDifference(StateWith({"driver of CUDA 13.1", "NVRTC 13.0"}), then),
            "driver of CUDA 13.1; the run has used driver of CUDA 13.0");
}

TEST(RunDifferenceTest, OfACheckpointWithoutADriverNothingIsKnownOfIt) {
  const CheckpointState now = StateWith({"driver of CUDA 13.1", "NVRTC 13.0"});
  EXPECT_EQ(RunDifference(now, StateWith({"NVRTC 13.0"})), "");
  EXPECT_EQ(RunDifference(now, StateWith({"NVRTC 12.9"})),
            "NVRTC 13.0; the run has used NVRTC 12.9");
}

TEST(RunDifferenceTest, OfACheckpointWithoutLibrariesNothingIsKnown) {
  EXPECT_EQ(RunDifference(StateWith({"NVRTC 13.0"}), StateWith({})), "");
}

TEST(RunDifferenceTest, NamesTheFirstNodeThatRunsOnAnotherKernel) {
  const auto plan = [](const std::string& up, const std::string& down) {
    return R"({"nodes":[{"step":"train","name":"up","kernel":")" + up +
           R"("},{"step":"train","name":"down","kernel":")" + down + R"("}]})";
  };
  const std::string other =
      FirstOtherKernel(plan("a/algo1", "a/algo2"), plan("a/algo1", "a/algo1"));
  EXPECT_EQ(other, "node 'down' of step 'train' on a/algo2, on a/algo1 then");
  EXPECT_EQ(FirstOtherKernel(plan("a/algo2", "a/algo2"), plan("a/algo1", "a/algo1")),
            "node 'up' of step 'train' on a/algo2, on a/algo1 then")
      << "in the plan's order";
  for (const std::string& none : {plan("a/algo1", "a/algo2"), std::string("{"), std::string("[]")})
    EXPECT_EQ(FirstOtherKernel(plan("a/algo1", "a/algo2"), none), "");
  CheckpointState now = StateWith({}), then = StateWith({});
  now.ridge_version = then.ridge_version = "1.2.3";
  now.kernels_sha256 = "other";
  EXPECT_EQ(RunDifference(now, then, other),
            "other kernels than the run (ridge 1.2.3 then, 1.2.3 now), node 'down' of step 'train' "
            "on a/algo2, on a/algo1 then");
  EXPECT_EQ(RunDifference(now, then), "other kernels than the run (ridge 1.2.3 then, 1.2.3 now)");
}

TEST(RunDifferenceTest, NamesTheDevice) {
  CheckpointState now = StateWith({});
  now.cpu = "cuda-nvidia-a100";
  EXPECT_EQ(RunDifference(now, StateWith({})),
            "device 'cuda-nvidia-a100'; the run has used 'cuda-nvidia-h200'");
}

}  // namespace
}  // namespace ridge

// What the host finds in a kernel that is wrong.
#include "tests/cuda_text/host_threads.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/cuda_text/text_program.h"

namespace ridge::cuda_text {
namespace {

constexpr const char* kKernels = R"(
// Each number is its neighbour's.
RIDGE_KERNEL void turn(const float* x, float* y) {
  __shared__ float row[64];
  row[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = row[(threadIdx.x + 1) % 64];
}
RIDGE_KERNEL void turn_without_a_barrier(const float* x, float* y) {
  __shared__ float row[64];
  row[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = row[(threadIdx.x + 1) % 64];
  if (false) __syncthreads();
}
RIDGE_KERNEL void leaves_before_a_barrier(const float* x, float* y) {
  if (threadIdx.x >= 32) return;
  __syncthreads();
  y[threadIdx.x] = x[threadIdx.x];
}
RIDGE_KERNEL void is_outside_its_mask(const float* x, float* y) {
  y[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, x[threadIdx.x], 1);
}
RIDGE_KERNEL void reads_what_nobody_wrote(const float* x, float* y) {
  __shared__ float row[64];
  y[threadIdx.x] = row[threadIdx.x];
}
// Each block's number is one more than the one before it has written.
RIDGE_KERNEL void reads_the_block_before(const float* x, float* y) {
  if (threadIdx.x == 0) y[blockIdx.x] = blockIdx.x == 0 ? x[1] : y[blockIdx.x - 1] + x[1];
}
)";

using Numbers = std::array<float, 64>;

class HostThreads : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    Result<std::unique_ptr<TextProgram>> program = TextProgram::Compile({kKernels});
    ASSERT_TRUE(program.ok()) << program.status().message();
    program_ = program->release();
  }
  static void TearDownTestSuite() {
    delete program_;
    program_ = nullptr;
  }

  std::string Run(const char* name, ThreadOrder order, Numbers& y, unsigned threads = 64) {
    Numbers x;
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    void* const arguments[] = {x.data(), y.data()};
    const RidgeHostKernel* const kernel = program_->Find(kKernels, name);
    EXPECT_NE(kernel, nullptr);
    return RunLaunch({kernel, /*blocks=*/2, threads, arguments}, order, program_->now());
  }

  static inline TextProgram* program_ = nullptr;
};

TEST_F(HostThreads, ABarrierOrdersWritesBeforeReadsInBothOrders) {
  for (const ThreadOrder order : {ThreadOrder::kForward, ThreadOrder::kBackward}) {
    Numbers y;
    ASSERT_EQ(Run("turn", order, y), "");
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], static_cast<float>((i + 1) % 64));
  }
}

TEST_F(HostThreads, AMissingBarrierShowsInTheOrderOfThreads) {
  Numbers forward, backward;
  ASSERT_EQ(Run("turn_without_a_barrier", ThreadOrder::kForward, forward), "");
  ASSERT_EQ(Run("turn_without_a_barrier", ThreadOrder::kBackward, backward), "");
  EXPECT_TRUE(std::isnan(forward[0]));  // the neighbour has not come
  EXPECT_EQ(backward[0], 1);
}

TEST_F(HostThreads, ABlockThatReadsAnotherShowsInTheOrderOfBlocks) {
  Numbers forward = {}, backward = {};
  ASSERT_EQ(Run("reads_the_block_before", ThreadOrder::kForward, forward), "");
  ASSERT_EQ(Run("reads_the_block_before", ThreadOrder::kBackward, backward), "");
  EXPECT_EQ(forward[1], 2);
  EXPECT_EQ(backward[1], 1);  // the block before has not come
}

TEST_F(HostThreads, ABarrierThatNotAllReachIsAnError) {
  Numbers y;
  EXPECT_EQ(Run("leaves_before_a_barrier", ThreadOrder::kForward, y),
            "__syncthreads() that not all threads reach");
}

TEST_F(HostThreads, ALaneOutsideItsMaskIsAnError) {
  Numbers y;
  EXPECT_EQ(Run("is_outside_its_mask", ThreadOrder::kForward, y), "a lane outside its own mask");
}

TEST_F(HostThreads, SharedMemoryBeginsAsNaN) {
  Numbers y = {};
  ASSERT_EQ(Run("reads_what_nobody_wrote", ThreadOrder::kForward, y), "");
  for (const float number : y) EXPECT_TRUE(std::isnan(number));
}

TEST_F(HostThreads, ABlockIsWholeWarps) {
  Numbers y;
  for (const unsigned threads : {0u, 33u, 1056u}) {
    EXPECT_EQ(Run("turn", ThreadOrder::kForward, y, threads),
              "threads of a block: a multiple of 32, at most 1024");
  }
}

}  // namespace
}  // namespace ridge::cuda_text

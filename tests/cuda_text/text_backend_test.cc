// What the backend finds in a kernel that writes around its operands.
#include "tests/cuda_text/text_backend.h"

#include <gtest/gtest.h>

#include "ridge/backend/cpu/host_device.h"
#include "ridge/core/tensor.h"

namespace ridge::cuda_text {
namespace {

constexpr const char* kKernels = R"(
RIDGE_KERNEL void copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
RIDGE_KERNEL void writes_behind(const float* x, float* y) {
  y[threadIdx.x + 1] = x[threadIdx.x];
}
RIDGE_KERNEL void writes_in_front(const float* x, float* y) {
  (y - 1)[threadIdx.x] = x[threadIdx.x];
}
)";

// The kernel on operands of 64 numbers, a thread each.
Status RunPlanted(const std::string& function) {
  const TensorType type{DType::kF32, {64}};
  const auto program = TextProgram::Compile({kKernels});
  if (!program.ok()) return program.status();
  const cuda::KernelText text{
      .source = kKernels,
      .launches = {{function, 1, 64, {cuda::Argument::Input(0), cuda::Argument::Output(0)}}}};
  const auto kernel = MakeTextKernel(text, {"planted", {type}, {type}, {}}, **program);
  Tensor x(type), y(type), workspace({DType::kU8, {0}});
  for (int64_t i = 0; i < 64; ++i)
    StoreFromDouble(DType::kF32, x.mutable_data(), i, static_cast<double>(i));
  const void* const in = x.data();
  void* const out = y.mutable_data();
  return cpu::RunOnHost(*kernel, {{&in, 1}, {&out, 1}, workspace.mutable_data()});
}

TEST(TextBackend, AKernelOnItsOperandsRuns) {
  const Status status = RunPlanted("copy");
  EXPECT_TRUE(status.ok()) << status.message();
}

void ExpectFound(const std::string& function) {
#if defined(RIDGE_ADDRESS_SANITIZER)
  EXPECT_DEATH((void)RunPlanted(function), "heap-buffer-overflow");
#else
  EXPECT_EQ(RunPlanted(function).message(), function + " wrote around an operand");
#endif
}

TEST(TextBackendDeathTest, AStoreBehindAnOperandIsFound) { ExpectFound("writes_behind"); }

TEST(TextBackendDeathTest, AStoreInFrontOfAnOperandIsFound) { ExpectFound("writes_in_front"); }

}  // namespace
}  // namespace ridge::cuda_text

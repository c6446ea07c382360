#include "ridge/backend/cpu/kernels/moment_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ridge::cpu {
namespace {

constexpr int64_t kCount = 5000;  // several shares, and a last short block

// What `threads` leave of moments that are 0 and get i / 1000 added.
Tensor Left(DType form, int threads) {
  const TensorType f32 = {DType::kF32, {kCount}}, kept = {form, {kCount}};
  OpCall call{.where = "y",
              .inputs = {f32,
                         f32,
                         {DType::kF32, {}},
                         kept,
                         {DType::kI64, {2}},
                         {DType::kF32, {CodeBlocks(kCount)}}},
              .outputs = {},
              .attrs = {}};
  const auto types = InferCall(*FindOp("sgd_update"), call);
  EXPECT_TRUE(types.ok()) << types.status().message();
  std::vector<Tensor> tensors;
  std::vector<const void*> in;
  for (const TensorType& type : call.inputs) tensors.emplace_back(type);
  for (const Tensor& tensor : tensors) in.push_back(tensor.data());
  void* const out[] = {nullptr, tensors[3].mutable_data(), tensors[5].mutable_data()};
  const MomentBlocks blocks(call, {kSgdBuffer}, threads);
  blocks.ForEach({in, out, nullptr}, [](int64_t first, int64_t count, float* const* moments) {
    for (int64_t i = 0; i < count; ++i)
      moments[0][i] += static_cast<float>(first + i) / 1000 * (i % 2 == 0 ? 1 : -1);
  });
  return tensors[3];
}

TEST(MomentBlocks, LeaveTheSameBitsWithAnyNumberOfThreads) {
  for (const DType form : {DType::kBF16, DType::kU8}) {
    const Tensor one = Left(form, 1);
    for (const int threads : {2, 3, 5}) EXPECT_TRUE(Left(form, threads).same_bits(one)) << threads;
  }
}

}  // namespace
}  // namespace ridge::cpu

// Which fused nodes the kernels of the CPU are made for.
#include "ridge/backend/cpu/host_rules.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

bool Fuses(const char* op_name, std::vector<TensorType> inputs, const AttrMap& attrs) {
  const OpDef& op = *FindOp(op_name);
  OpCall call{op_name, std::move(inputs), {}, op.attr_defaults};
  for (const auto& [name, value] : attrs) call.attrs[name] = value;
  const Result<std::vector<TensorType>> types = InferCall(op, call);
  EXPECT_TRUE(types.ok()) << types.status().message();
  call.outputs = *types;
  return HostRules().Fuses(op, call);
}

std::string Repeated(const std::string& step, int times) {
  std::string text = step;
  for (int i = 1; i < times; ++i) text += "," + step;
  return text;
}

TEST(HostRules, TakeTheStepsOfOnednnBehindProducts) {
  const TensorType x{DType::kF32, {4, 4}};
  EXPECT_TRUE(
      Fuses("matmul", {x, x, OpCall::Absent(), x}, {{"epilogue", std::string("add,relu")}}));
  EXPECT_TRUE(Fuses("matmul", {x, x}, {{"epilogue", Repeated("relu", 16)}}));
  EXPECT_FALSE(Fuses("matmul", {x, x}, {{"epilogue", Repeated("relu", 17)}}));
  EXPECT_FALSE(Fuses("matmul", {x, x}, {{"epilogue", std::string("exp")}}));
  const TensorType image{DType::kF32, {1, 2, 4, 4}}, w{DType::kF32, {2, 2, 1, 1}};
  EXPECT_TRUE(Fuses("conv", {image, w}, {{"epilogue", std::string("gelu")}}));
}

TEST(HostRules, TakeStepsOfNormsOverImagesOfF32) {
  const auto fuses = [](DType dtype, Dims x) {
    const TensorType channels{DType::kF32, {x[1]}};
    return Fuses("batch_norm", {{dtype, std::move(x)}, channels, channels},
                 {{"epilogue", std::string("relu")}});
  };
  EXPECT_TRUE(fuses(DType::kF32, {3, 4, 5, 5}));
  EXPECT_FALSE(fuses(DType::kF32, {3, 4, 2, 2}));
  EXPECT_FALSE(fuses(DType::kF32, {6, 4}));
  EXPECT_FALSE(fuses(DType::kBF16, {3, 4, 5, 5}));
}

TEST(HostRules, TakeConvolutionsOfFewChannelsWithTheirPools) {
  const auto fuses = [](DType dtype, int64_t channels, int64_t kernel) {
    return Fuses("conv_pool",
                 {{dtype, {2, channels, 9, 8}}, {dtype, {3, channels, kernel, kernel}}}, {});
  };
  EXPECT_TRUE(fuses(DType::kF32, 1, 3));
  EXPECT_TRUE(fuses(DType::kF32, 4, 5));
  EXPECT_FALSE(fuses(DType::kF32, 12, 3));
  EXPECT_FALSE(fuses(DType::kF32, 1, 6));
  EXPECT_FALSE(fuses(DType::kF64, 1, 3));
}

}  // namespace
}  // namespace ridge

#include "ridge/plan/hardware/conv_workspaces.h"

#include <gtest/gtest.h>

#include "ridge/plan/hardware/hardware.h"

namespace ridge {
namespace {

const std::string kUsual = " stride 1x1 padding 1x1x1x1 dilation 1x1";
const std::string kMiddle = " bf16 bf16 256x64x56x56 64x64x3x3" + kUsual;

std::string Stem(const std::string& op, int64_t channels) {
  const std::string c = std::to_string(channels);
  return op + " bf16 bf16 256x" + c + "x224x224 64x" + c +
         "x7x7 stride 2x2 padding 3x3x3x3 dilation 1x1";
}

int64_t Bytes(const char* device, const std::string& question) {
  const std::optional<ConvAnswer> answer = FindConvAnswer(device, question);
  EXPECT_TRUE(answer) << device << ": " << question;
  return answer ? answer->bytes : -1;
}

// What cuDNN 9.19.0 answered when it was asked for the first time, by another program.
TEST(ConvWorkspacesTest, TheTableHasTheFirstMeasurements) {
  EXPECT_EQ(ConvLibrary(), "cuDNN 9.19.0");
  EXPECT_EQ(Bytes("h200-sxm", "conv" + kMiddle), 131);
  EXPECT_EQ(Bytes("h200-sxm", "conv_grad_input" + kMiddle), 131);
  EXPECT_EQ(Bytes("h200-sxm", "conv_grad_weight" + kMiddle), 295'107);
  EXPECT_EQ(Bytes("h200-sxm", "conv" + kMiddle + " with bias,relu"), 131);
  EXPECT_EQ(Bytes("h200-sxm", Stem("conv", 3)), 205'571'088);
  EXPECT_EQ(Bytes("h200-sxm", Stem("conv_grad_weight", 3)), 211'692'688);
  EXPECT_EQ(Bytes("h200-sxm", Stem("conv", 8)), 0);
  EXPECT_EQ(Bytes("h200-sxm", Stem("conv_grad_weight", 8)), 6'121'600);
  for (const char* device : {"a100-sxm4-80g", "b200"}) {
    EXPECT_EQ(Bytes(device, "conv" + kMiddle), 0);
    EXPECT_EQ(Bytes(device, "conv_grad_input" + kMiddle), 0);
    EXPECT_EQ(Bytes(device, "conv" + kMiddle + " with bias,relu"), 0);
    EXPECT_NEAR(static_cast<double>(Bytes(device, Stem("conv", 3))), 205.6e6, 0.05e6);
    EXPECT_EQ(Bytes(device, Stem("conv", 8)), 0);
  }
  const auto near = [](const char* device, const std::string& question, double bytes) {
    EXPECT_NEAR(static_cast<double>(Bytes(device, question)), bytes, 0.05e6) << device;
  };
  near("a100-sxm4-80g", "conv_grad_weight" + kMiddle, 5.2e6);
  near("b200", "conv_grad_weight" + kMiddle, 4.7e6);
  near("a100-sxm4-80g", Stem("conv_grad_weight", 3), 211.1e6);
  near("b200", Stem("conv_grad_weight", 3), 208.4e6);
  near("a100-sxm4-80g", Stem("conv_grad_weight", 8), 6.8e6);
  near("b200", Stem("conv_grad_weight", 8), 2.8e6);
}

TEST(ConvWorkspacesTest, EveryDeviceOfTheTableIsInTheCatalog) {
  const std::vector<RecordedAnswer> all = RecordedConvs();
  EXPECT_GT(all.size(), 500u);
  for (const RecordedAnswer& row : all) EXPECT_TRUE(FindHardware(row.device).ok()) << row.device;
}

TEST(ConvWorkspacesTest, WhatWasNotAskedHasNoAnswer) {
  EXPECT_FALSE(FindConvAnswer("h200-sxm", "conv bf16 bf16 7x64x56x56 64x64x3x3" + kUsual));
  EXPECT_FALSE(FindConvAnswer("t4", "conv" + kMiddle));
}

OpCall ConvCall() {
  OpCall call;
  call.inputs = {{DType::kF32, {2, 8, 9, 10}}, {DType::kF32, {16, 4, 3, 2}}, OpCall::Absent()};
  call.outputs = {{DType::kF32, {2, 16, 5, 9}}};
  call.attrs = FindOp("conv")->attr_defaults;
  call.attrs["groups"] = int64_t{2};
  call.attrs["stride"] = std::vector<int64_t>{2, 1};
  call.attrs["padding"] = std::vector<int64_t>{1, 0, 1, 0};
  return call;
}

TEST(ConvWorkspacesTest, TheQuestionNamesWhatCudnnMustKnow) {
  OpCall call = ConvCall();
  const OpDef& conv = *FindOp("conv");
  EXPECT_EQ(ConvQuestion(conv, call, /*tf32=*/false),
            "conv f32 f32 2x8x9x10 16x4x3x2 stride 2x1 padding 1x0x1x0 dilation 1x1");
  call.inputs[2] = {DType::kF32, {16}};
  call.attrs["epilogue"] = std::string("relu");
  EXPECT_EQ(ConvQuestion(conv, call, /*tf32=*/true),
            "conv tf32 f32 2x8x9x10 16x4x3x2 stride 2x1 padding 1x0x1x0 dilation 1x1 with "
            "bias,relu");
  EXPECT_EQ(ConvQuestion(*FindOp("matmul"), call, false), std::nullopt);
}

}  // namespace
}  // namespace ridge

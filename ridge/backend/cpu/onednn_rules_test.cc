// The rules against the library, for the instructions of the CPU that the test runs on.
#include "ridge/backend/cpu/onednn_rules.h"

#include <gtest/gtest.h>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/onednn.h"
#include "ridge/backend/reference/reference_backend.h"
#include "ridge/graph/op_def.h"

namespace ridge::cpu {
namespace {

struct ConvShape {
  int64_t batch, inputs, outputs, extent, kernel, stride, padding, groups;
};

constexpr ConvShape kShapes[] = {
    {2, 3, 64, 64, 7, 2, 3, 1},   {2, 1, 32, 28, 3, 1, 1, 1},      {2, 64, 64, 28, 3, 1, 1, 1},
    {2, 64, 128, 28, 3, 2, 1, 1}, {2, 128, 64, 28, 1, 1, 0, 1},    {2, 64, 128, 28, 1, 2, 0, 1},
    {2, 512, 512, 7, 1, 2, 0, 1}, {2, 20, 40, 30, 5, 1, 2, 1},     {2, 17, 33, 20, 3, 1, 1, 1},
    {8, 24, 24, 56, 3, 1, 1, 1},  {2, 48, 48, 56, 2, 2, 0, 1},     {2, 3, 192, 224, 16, 16, 0, 1},
    {2, 64, 64, 28, 3, 1, 1, 64}, {2, 240, 240, 14, 5, 2, 2, 240}, {2, 40, 40, 28, 3, 2, 1, 40},
    {2, 64, 64, 28, 3, 1, 1, 4},  {2, 48, 48, 14, 3, 1, 1, 6},     {2, 128, 128, 28, 3, 1, 1, 32},
};

// oneDNN's first choice, asked of the library or by the rules for this CPU's instructions.
KernelChoice ChoiceOf(const std::string& op_name, const OpCall& call, bool by_rules) {
  CpuContext cpu;
  cpu.threads = 2;
  cpu.engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
  cpu.direct_conv = true;
  cpu.instructions = LibraryInstructions();
  cpu.is_here = !by_rules;
  const std::vector<LayoutId> row_major(call.inputs.size(), kRowMajor);
  KernelCandidates candidates;
  OfferCandidates({cpu, *FindOp(op_name), call, row_major}, /*measured=*/false, candidates);
  for (const KernelChoice& choice : candidates.choices) {
    if (choice.kernel.starts_with("onednn.")) return choice;
  }
  return {};
}

OpCall CallOf(const std::string& op_name, std::vector<TensorType> inputs, AttrMap attrs) {
  OpCall call{op_name, std::move(inputs), {}, std::move(attrs)};
  call.outputs = *InferCall(*FindOp(op_name), call);
  return call;
}

// Weights of strided gradients are packed by widths that the rules round.
void ExpectSameAnswer(const std::string& op_name, const OpCall& call, size_t weights) {
  const KernelChoice asked = ChoiceOf(op_name, call, /*by_rules=*/false);
  KernelChoice ruled = ChoiceOf(op_name, call, /*by_rules=*/true);
  const std::string where = CallKey(*FindOp(op_name), call);
  EXPECT_EQ(ruled.kernel, asked.kernel) << where;
  if (asked.kernel.find("strided") != std::string::npos)
    ruled.input_layouts[weights] = asked.input_layouts[weights];
  EXPECT_EQ(ruled.input_layouts, asked.input_layouts) << where;
  EXPECT_EQ(ruled.output_layouts, asked.output_layouts) << where;
  constexpr int64_t kSlack = 64 * 1024;
  EXPECT_GE(ruled.workspace_bytes + kSlack, asked.workspace_bytes) << where << ruled.kernel;
}

class OneDnnRules : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasRules(DType::kF32, LibraryInstructions()))
      GTEST_SKIP() << "not on this machine: no rules for this CPU";
  }
};

void ExpectSameConvolutions(DType dtype) {
  for (const ConvShape& s : kShapes) {
    const std::vector<int64_t> padding(4, s.padding), stride(2, s.stride);
    const AttrMap attrs = {{"padding", padding}, {"stride", stride}, {"groups", s.groups}};
    const TensorType x{dtype, {s.batch, s.inputs, s.extent, s.extent}};
    const TensorType w{dtype, {s.outputs, s.inputs / s.groups, s.kernel, s.kernel}};
    const OpCall forward = CallOf("conv", {x, w}, attrs);
    ExpectSameAnswer("conv", forward, 1);
    const TensorType dy = forward.outputs[0];
    AttrMap weight_attrs = attrs, input_attrs = attrs;
    weight_attrs["weight_dims"] = w.dims;
    ExpectSameAnswer("conv_grad_weight", CallOf("conv_grad_weight", {x, dy}, weight_attrs), 1);
    if (s.inputs <= 3) continue;  // of a first layer nobody wants it
    input_attrs["input_dims"] = x.dims;
    ExpectSameAnswer("conv_grad_input", CallOf("conv_grad_input", {dy, w}, input_attrs), 1);
  }
}

TEST_F(OneDnnRules, SayOfConvolutionsWhatTheLibrarySays) { ExpectSameConvolutions(DType::kF32); }

TEST_F(OneDnnRules, SayOfConvolutionsInBF16WhatTheLibrarySays) {
  if (!LibraryInstructions().bf16) GTEST_SKIP() << "not on this machine: no products of bf16";
  ExpectSameConvolutions(DType::kBF16);
}

TEST_F(OneDnnRules, SayOfProductsWhatTheLibrarySays) {
  for (const Dims& e : {Dims{128, 784, 512}, Dims{784, 2048, 512}, Dims{2048, 256, 1000}}) {
    for (const int64_t transpose : {0, 1}) {
      const Dims a = transpose != 0 ? Dims{e[1], e[0]} : Dims{e[0], e[1]};
      ExpectSameAnswer("matmul",
                       CallOf("matmul", {{DType::kF32, a}, {DType::kF32, {e[1], e[2]}}},
                              {{"transpose_a", transpose}}),
                       1);
    }
  }
}

TEST(OneDnnRulesOfAnotherCpu, OfferBlocksOf16UnderAvx512OnAnyCpu) {
  const InstructionSet avx512{Instructions::kAvx512, /*bf16=*/true};
  const auto planned = MakePlannedCpu(2, avx512, ConvKernels::kDirect, OfferedKernels::kUsual);
  ASSERT_TRUE(planned.ok());
  KernelQuery& query = **planned;
  EXPECT_TRUE(query.Multiplies(DType::kBF16));
  const OpCall call =
      CallOf("conv", {{DType::kF32, {2, 64, 28, 28}}, {DType::kF32, {64, 64, 3, 3}}}, AttrMap{});
  const std::vector<LayoutId> row_major(2, kRowMajor);
  const KernelChoice choice = query.Candidates(*FindOp("conv"), call, row_major).choices.at(0);
  EXPECT_EQ(choice.kernel, "onednn.conv/jit:avx512_core");
  EXPECT_EQ(query.LayoutName(choice.output_layouts[0]), "aBcd16b");
}

}  // namespace
}  // namespace ridge::cpu

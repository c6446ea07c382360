// Winograd convolutions against double and against direct kernels.
//
// Agreement over borders, tails and epilogues: tests/ops/conv*.case.
#include "ridge/backend/cpu/kernels/winograd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/cpu/host_device.h"
#include "ridge/backend/cpu/timed_call.h"
#include "ridge/core/threads.h"

namespace ridge {
namespace {

struct ConvCase {
  int64_t batch, inputs, outputs, height, width;
};

class WinogradTest : public testing::Test {
 protected:
  const int threads_ = std::min(2, AvailableThreads());

  static OpCall Call(const std::string& op, const ConvCase& c) {
    const TensorType x{DType::kF32, {c.batch, c.inputs, c.height, c.width}};
    const TensorType w{DType::kF32, {c.outputs, c.inputs, 3, 3}};
    const TensorType y{DType::kF32, {c.batch, c.outputs, c.height, c.width}};
    OpCall call{op, {x, w}, {}, {{"padding", std::vector<int64_t>{1, 1, 1, 1}}}};
    if (op == "conv_grad_input") {
      call.inputs = {y, w};
      call.attrs["input_dims"] = x.dims;
    } else if (op == "conv_grad_weight") {
      call.inputs = {x, y};
      call.attrs["weight_dims"] = w.dims;
      call.attrs["bias"] = int64_t{1};
    }
    call.outputs = *InferCall(*FindOp(op), call);
    return call;
  }

  static Tensor Reordered(Backend& backend, const TensorType& type, LayoutId from, LayoutId to,
                          const Tensor& data) {
    if (from == to) return data;
    Tensor out({DType::kU8, {backend.LayoutBytes(to, type)}});
    const KernelChoice choice = backend.Reorder(type, from, to);
    Tensor workspace({DType::kU8, {choice.workspace_bytes + 1}});
    const void* in[] = {data.data()};
    void* target[] = {out.mutable_data()};
    const auto kernel = backend.CreateReorder(type, choice);
    EXPECT_TRUE(cpu::RunOnHost(**kernel, {in, target, workspace.mutable_data()}).ok());
    return out;
  }

  // The first candidate's outputs, row-major.
  std::vector<Tensor> Run(ConvKernels conv, const OpCall& call, const std::vector<Tensor>& inputs,
                          std::string& kernel_name) const {
    const std::unique_ptr<Backend> backend = std::move(*MakeCpuBackend(threads_, conv));
    const OpDef& op = *FindOp(call.where);
    const KernelChoice choice = backend->Candidates(op, call, {}).choices.at(0);
    kernel_name = choice.kernel;
    std::vector<Tensor> moved, outputs;
    std::vector<const void*> in;
    std::vector<void*> out;
    for (size_t i = 0; i < inputs.size(); ++i) {
      moved.push_back(
          Reordered(*backend, call.inputs[i], kRowMajor, choice.input_layouts[i], inputs[i]));
      in.push_back(moved.back().data());
    }
    for (size_t o = 0; o < call.outputs.size(); ++o) {
      outputs.push_back(
          cpu::RandomBytes(backend->LayoutBytes(choice.output_layouts[o], call.outputs[o])));
      out.push_back(outputs.back().mutable_data());
    }
    Tensor workspace = cpu::RandomBytes(choice.workspace_bytes);
    const auto kernel = backend->Create(op, call, choice);
    EXPECT_TRUE(cpu::RunOnHost(**kernel, {in, out, workspace.mutable_data()}).ok());
    for (size_t o = 0; o < call.outputs.size(); ++o) {
      outputs[o] =
          Reordered(*backend, call.outputs[o], choice.output_layouts[o], kRowMajor, outputs[o]);
    }
    return outputs;
  }

  static std::vector<Tensor> Inputs(const OpCall& call) {
    std::vector<Tensor> inputs;
    for (const TensorType& type : call.inputs) inputs.push_back(cpu::RandomBytes(type.bytes()));
    return inputs;
  }

  // By OpDef::reference.
  static std::vector<std::vector<double>> Exact(const OpCall& call,
                                                const std::vector<Tensor>& inputs) {
    std::vector<std::vector<double>> in, out;
    std::vector<const double*> in_data;
    std::vector<double*> out_data;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto* data = inputs[i].as<float>();
      in.emplace_back(data, data + call.inputs[i].elements());
      in_data.push_back(in.back().data());
    }
    for (const TensorType& type : call.outputs)
      out.emplace_back(static_cast<size_t>(type.elements()));
    for (auto& values : out) out_data.push_back(values.data());
    FindOp(call.where)->reference(call, in_data, out_data);
    return out;
  }

  // The largest difference as a share of the largest element.
  template <typename T>
  static double Difference(const Tensor& y, const T* expected, int64_t count) {
    const auto* data = y.as<float>();
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto e = static_cast<double>(expected[i]);
      worst = std::max(worst, std::abs(double{data[i]} - e));
      largest = std::max(largest, std::abs(e));
    }
    return worst / largest;
  }

  void ExpectNearDirect(const char* op, const ConvCase& c) const {
    const OpCall call = Call(op, c);
    const std::vector<Tensor> inputs = Inputs(call);
    std::string kernel, direct;
    const std::vector<Tensor> outputs = Run(ConvKernels::kAuto, call, inputs, kernel);
    if (kernel.find("winograd") == std::string::npos)
      GTEST_SKIP() << "not on this machine: no vectors of 16";
    const std::vector<Tensor> expected = Run(ConvKernels::kDirect, call, inputs, direct);
    EXPECT_EQ(direct.find("winograd"), std::string::npos);
    for (size_t o = 0; o < outputs.size(); ++o) {
      EXPECT_LT(Difference(outputs[o], expected[o].as<float>(), call.outputs[o].elements()), 1e-5)
          << op << " output " << o;
    }
  }
};

constexpr const char* kOps[] = {"conv", "conv_grad_input", "conv_grad_weight"};

// Direct kernels stay below 5e-7; points 0, +-1, +-2 would give up to 1e-5.
TEST_F(WinogradTest, StaysWithinAFewRoundingsOfDouble) {
  for (const ConvCase& c : {ConvCase{2, 64, 64, 20, 23}, ConvCase{1, 256, 32, 16, 16}}) {
    for (const char* op : kOps) {
      const OpCall call = Call(op, c);
      const std::vector<Tensor> inputs = Inputs(call);
      std::string kernel;
      const std::vector<Tensor> outputs = Run(ConvKernels::kAuto, call, inputs, kernel);
      if (kernel.find("winograd") == std::string::npos)
        GTEST_SKIP() << "not on this machine: no vectors of 16";
      const auto exact = Exact(call, inputs);
      for (size_t o = 0; o < outputs.size(); ++o) {
        EXPECT_LT(Difference(outputs[o], exact[o].data(), call.outputs[o].elements()), 4e-6)
            << op << " output " << o;
      }
    }
  }
}

cpu::WinogradShape Shape(const ConvCase& c) {
  return {c.batch, c.inputs, c.outputs, c.height, c.width, c.height, c.width, 1, 1};
}

// More transformed weights than a thread keeps, and more tiles than are transformed at once.
TEST_F(WinogradTest, AgreesWithDirectKernelsWhenThreadsShareTheTiles) {
  ExpectNearDirect("conv", {1, 768, 64, 45, 47});
  ExpectNearDirect("conv_grad_input", {2, 64, 768, 45, 46});
  ExpectNearDirect("conv_grad_weight", {1, 160, 240, 60, 63});
}

TEST_F(WinogradTest, AgreesWithDirectKernelsWhenEachThreadKeepsSeveralPanelsOfWeights) {
  const ConvCase many{1, 64, 272, 60, 63};
  const cpu::WinogradSplit split = cpu::SplitWinograd(Shape(many), threads_);
  EXPECT_TRUE(split.own_weights);
  EXPECT_GT(split.panels, 1);
  ExpectNearDirect("conv", many);
  ExpectNearDirect("conv_grad_input", {1, 272, 64, 60, 63});
}

TEST(WinogradSplit, CoversAllTilesAndPanels) {
  for (const ConvCase& c : {ConvCase{1, 16, 16, 1, 1}, ConvCase{4, 32, 32, 128, 128},
                            ConvCase{16, 256, 256, 14, 14}, ConvCase{1, 768, 80, 45, 47}}) {
    for (const int threads : {1, 2, 7, 64}) {
      const cpu::WinogradShape shape = Shape(c);
      const cpu::WinogradSplit split = cpu::SplitWinograd(shape, threads);
      const int64_t tiles =
          split.by_tiles ? (shape.tiles() + threads - 1) / threads : shape.tiles();
      EXPECT_TRUE(split.by_tiles || !split.own_weights);
      EXPECT_EQ(split.rows % cpu::kWinogradRowGrain, 0);
      EXPECT_GE(split.rows * split.chunks, tiles);
      EXPECT_LT(split.rows * (split.chunks - 1), tiles);
      EXPECT_GE(split.panels * split.panel_blocks, shape.outer_blocks());
      EXPECT_LT((split.panels - 1) * split.panel_blocks, shape.outer_blocks());
    }
  }
}

double EfficiencyOf(const ConvCase& c) {
  const OpCall call{"conv",
                    {{DType::kF32, {c.batch, c.inputs, c.height, c.width}},
                     {DType::kF32, {c.outputs, c.inputs, 3, 3}}},
                    {{DType::kF32, {c.batch, c.outputs, c.height, c.width}}},
                    {{"padding", std::vector<int64_t>{1, 1, 1, 1}},
                     {"stride", std::vector<int64_t>{}},
                     {"dilation", std::vector<int64_t>{}},
                     {"groups", int64_t{1}}}};
  return cpu::WinogradEfficiency(Shape(c), ConvGeometryOf(call));
}

TEST(WinogradEfficiency, LeavesInputsOfFewChannelsTinyImagesAndHeavyWeightsDirect) {
  EXPECT_GT(EfficiencyOf({4, 32, 32, 128, 128}), 2);
  EXPECT_GT(EfficiencyOf({16, 256, 256, 14, 14}), 1.5);
  EXPECT_LT(EfficiencyOf({4, 3, 32, 128, 128}), 1);
  EXPECT_LT(EfficiencyOf({4, 64, 64, 1, 1}), 1);
  EXPECT_LT(EfficiencyOf({4, 512, 512, 4, 4}), 1);
}

}  // namespace
}  // namespace ridge

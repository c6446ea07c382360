// The CPU backend as the planner and the executor use it: candidates, layouts, chains, allocations.
// Agreement with the reference over all case files: tests/ops/cpu_cases_test.cc.
#include "ridge/backend/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "ridge/backend/cpu/host_device.h"
#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/cpu/timed_call.h"
#include "ridge/core/threads.h"

#ifndef RIDGE_SANITIZED_MEMORY
#define RIDGE_COUNTS_ALLOCATIONS
namespace {
std::atomic<bool> counting{false};
std::atomic<int64_t> allocated_bytes{0};
}  // namespace

// Stands in front of the C library's for every caller in the process, oneDNN included.
extern "C" void* __libc_malloc(size_t size);
extern "C" void* malloc(size_t size) {
  if (counting) allocated_bytes += static_cast<int64_t>(size);
  return __libc_malloc(size);
}
extern "C" void* __libc_memalign(size_t alignment, size_t size);
extern "C" int posix_memalign(void** memory, size_t alignment, size_t size) {
  if (counting) allocated_bytes += static_cast<int64_t>(size);
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
#endif

namespace ridge {
namespace {

using Ints = std::vector<int64_t>;

TensorType F32(Dims dims) { return {DType::kF32, std::move(dims)}; }

OpCall MakeCall(const char* op, std::vector<TensorType> inputs, AttrMap attrs) {
  OpCall call{op, std::move(inputs), {}, std::move(attrs)};
  call.outputs = *InferCall(*FindOp(op), call);
  return call;
}

class CpuBackendTest : public testing::Test {
 protected:
  std::unique_ptr<Backend> cpu_ = std::move(*MakeCpuBackend(std::min(2, AvailableThreads())));

  KernelCandidates Candidates(const char* op, const OpCall& call,
                              std::vector<LayoutId> available = {}) {
    available.resize(call.inputs.size(), kRowMajor);
    return cpu_->Candidates(*FindOp(op), call, available);
  }

  Tensor Reorder(const TensorType& type, LayoutId from, LayoutId to, const Tensor& data) {
    Tensor out({DType::kU8, {cpu_->LayoutBytes(to, type)}});
    if (from == to) {
      std::memcpy(out.mutable_data(), data.data(), static_cast<size_t>(out.bytes()));
      return out;
    }
    const KernelChoice choice = cpu_->Reorder(type, from, to);
    Tensor workspace({DType::kU8, {choice.workspace_bytes + 1}});
    const void* in[] = {data.data()};
    void* target[] = {out.mutable_data()};
    EXPECT_TRUE(
        cpu::RunOnHost(**cpu_->CreateReorder(type, choice), {in, target, workspace.mutable_data()})
            .ok());
    return out;
  }

  // The first candidate for these layouts, or the first one that is all row-major.
  Tensor Run(const char* op, const OpCall& call, const std::vector<Tensor>& inputs,
             std::vector<LayoutId>& layouts, bool row_major) {
    layouts.resize(call.inputs.size(), kRowMajor);
    for (const KernelChoice& choice : Candidates(op, call, layouts).choices) {
      const bool plain = choice.input_layouts == std::vector<LayoutId>(call.inputs.size(), 0) &&
                         choice.output_layouts[0] == kRowMajor;
      if (row_major && !plain) continue;
      std::vector<Tensor> moved, outputs;
      std::vector<const void*> in;
      std::vector<void*> out;
      for (size_t i = 0; i < inputs.size(); ++i) {
        moved.push_back(Reorder(call.inputs[i], layouts[i], choice.input_layouts[i], inputs[i]));
        in.push_back(moved.back().data());
      }
      for (size_t o = 0; o < call.outputs.size(); ++o) {
        outputs.emplace_back(
            TensorType{DType::kU8, {cpu_->LayoutBytes(choice.output_layouts[o], call.outputs[o])}});
        out.push_back(outputs.back().mutable_data());
      }
      Tensor workspace({DType::kU8, {choice.workspace_bytes + 1}});
      auto kernel = cpu_->Create(*FindOp(op), call, choice);
      EXPECT_TRUE(kernel.ok());
      EXPECT_TRUE(cpu::RunOnHost(**kernel, {in, out, workspace.mutable_data()}).ok());
      layouts = {choice.output_layouts[0]};
      return outputs[0];
    }
    ADD_FAILURE() << "no candidate for " << op;
    return Tensor();
  }

  // conv -> batch_norm -> relu -> add(conv, relu) -> max_pool, in `row_major` or as offered.
  Tensor RunChain(bool row_major, LayoutId& conv_layout) {
    const TensorType x = F32({2, 32, 9, 9});
    std::vector<LayoutId> layouts;
    const OpCall conv = MakeCall("conv", {x, F32({32, 32, 3, 3})}, {{"padding", Ints{1, 1, 1, 1}}});
    const Tensor c =
        Run("conv", conv, {cpu::RandomBytes(x.bytes()), cpu::RandomBytes(32 * 32 * 36)}, layouts,
            row_major);
    const LayoutId layout = conv_layout = layouts[0];
    const OpCall norm = MakeCall("batch_norm", {x, F32({32}), F32({32})}, {});
    layouts = {layout};
    const Tensor vector = cpu::RandomBytes(128);
    const Tensor n = Run("batch_norm", norm, {c, vector, vector}, layouts, row_major);
    EXPECT_EQ(layouts[0], layout);
    const Tensor r = Run("relu", MakeCall("relu", {x}, {}), {n}, layouts, row_major);
    EXPECT_EQ(layouts[0], layout);
    layouts = {layout, layout};
    const Tensor sum = Run("add", MakeCall("add", {x, x}, {}), {c, r}, layouts, row_major);
    EXPECT_EQ(layouts[0], layout);
    const OpCall pool = MakeCall("max_pool", {x}, {{"kernel", Ints{3, 3}}, {"stride", Ints{2, 2}}});
    const Tensor y = Run("max_pool", pool, {sum}, layouts, row_major);
    EXPECT_EQ(layouts[0], layout);
    return Reorder(pool.outputs[0], layout, kRowMajor, y);
  }
};

TEST_F(CpuBackendTest, BlockedChainsAgreeWithRowMajorOnes) {
  LayoutId blocked = kRowMajor, plain = kRowMajor;
  const Tensor y = RunChain(/*row_major=*/false, blocked);
  const Tensor expected = RunChain(/*row_major=*/true, plain);
  EXPECT_EQ(plain, kRowMajor);
  ASSERT_EQ(y.bytes(), expected.bytes());
  const float* a = y.as<float>();
  const float* b = expected.as<float>();
  for (int64_t i = 0; i < y.bytes() / 4; ++i) ASSERT_NEAR(a[i], b[i], 1e-4) << i;
}

TEST_F(CpuBackendTest, OffersTheReferenceLast) {
  for (const OpDef& op : AllOps()) {
    if (op.name != "relu" && op.name != "conv" && op.name != "reduce_prod") continue;
    std::vector<TensorType> inputs = {F32({2, 16, 5, 5})};
    if (op.name == "conv") inputs.push_back(F32({16, 16, 3, 3}));
    const OpCall call = MakeCall(op.name.c_str(), inputs, {});
    EXPECT_EQ(Candidates(op.name.c_str(), call).choices.back().kernel, "reference");
  }
}

TEST_F(CpuBackendTest, NeverOffersSlowReferenceCodeOfTheLibrary) {
  const OpCall thin = MakeCall("conv", {F32({4, 1, 28, 28}), F32({32, 1, 3, 3})}, {});
  for (const KernelChoice& choice : Candidates("conv", thin).choices)
    EXPECT_EQ(choice.kernel.find("/ref"), std::string::npos) << choice.kernel;
}

TEST_F(CpuBackendTest, SaysWhyAKernelDeclines) {
  const OpCall call =
      MakeCall("conv", {{DType::kF16, {1, 1, 4, 4}}, {DType::kF16, {1, 1, 3, 3}}}, {});
  const KernelCandidates candidates = Candidates("conv", call);
  ASSERT_EQ(candidates.refusals.size(), 3u);
  EXPECT_EQ(candidates.refusals[0].kernel, "cpu.winograd_conv");
  EXPECT_EQ(candidates.refusals[0].reason, "dtype");
  EXPECT_EQ(candidates.refusals[1].kernel, "onednn.conv");
  EXPECT_EQ(candidates.refusals[1].reason, "dtype");
  EXPECT_EQ(candidates.refusals[2].kernel, "cpu.conv_f64");
  EXPECT_EQ(candidates.choices.size(), 1u);
}

TEST(CpuBackendConv, TakesNoWinogradKernelWhereDirectOnesAreAskedFor) {
  const OpCall call = MakeCall("conv", {F32({8, 64, 32, 32}), F32({64, 64, 3, 3})},
                               {{"padding", Ints{1, 1, 1, 1}}});
  const std::unique_ptr<Backend> direct = std::move(*MakeCpuBackend(1, ConvKernels::kDirect));
  const KernelCandidates candidates = direct->Candidates(*FindOp("conv"), call, {});
  EXPECT_EQ(candidates.refusals[0].kernel, "cpu.winograd_conv");
  EXPECT_EQ(candidates.refusals[0].reason, "--conv direct");
  for (const KernelChoice& choice : candidates.choices)
    EXPECT_EQ(choice.kernel.find("winograd"), std::string::npos) << choice.kernel;
}

TEST_F(CpuBackendTest, AnswersTheSameQuestionAlike) {
  const OpCall call = MakeCall("conv", {F32({2, 32, 9, 9}), F32({32, 32, 3, 3})}, {});
  const std::unique_ptr<Backend> other =
      std::move(*MakeCpuBackend(std::min(2, AvailableThreads())));
  const std::vector<LayoutId> available(2, kRowMajor);
  const KernelCandidates a = Candidates("conv", call);
  const KernelCandidates b = other->Candidates(*FindOp("conv"), call, available);
  ASSERT_EQ(a.choices.size(), b.choices.size());
  for (size_t i = 0; i < a.choices.size(); ++i) {
    EXPECT_EQ(a.choices[i].key, b.choices[i].key);
    EXPECT_EQ(a.choices[i].output_layouts, b.choices[i].output_layouts);
  }
}

TEST_F(CpuBackendTest, RefusesAnUnknownKernelOfAStoredPlan) {
  const OpCall call = MakeCall("relu", {F32({4})}, {});
  KernelChoice choice = Candidates("relu", call).choices[0];
  choice.kernel = "cpu.tomorrow";
  const auto kernel = cpu_->Create(*FindOp("relu"), call, choice);
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(
      kernel.status().message(),
      "relu: this program has no kernel 'cpu.tomorrow' on the CPU. hint: the plan was made by "
      "another version; plan again");
}

// oneDNN holds two descriptors for the same that differ in the stride of an extent of 1, and gives
// the primitive that it made first: of a as it is or of a transposed, whose scratchpads differ.
TEST_F(CpuBackendTest, ProductsKeepToTheirWorkspaceWhicheverWasMadeFirst) {
  const OpCall transposed = MakeCall("matmul", {F32({3, 1}), F32({3, 2})}, {{"transpose_a", 1}});
  const OpCall plain = MakeCall("matmul", {F32({1, 3}), F32({3, 2})}, {});
  const KernelChoice first = Candidates("matmul", transposed).choices.front();
  const KernelChoice second = Candidates("matmul", plain).choices.front();
  const OpDef& op = *FindOp("matmul");
  const auto made = cpu_->Create(op, transposed, first);
  auto kernel = cpu_->Create(op, plain, second);
  ASSERT_TRUE(made.ok() && kernel.ok());
  const std::vector<float> a(3, 1), b(6, 1);
  std::vector<float> y(2);
  const auto planned = static_cast<size_t>(second.workspace_bytes);
  Tensor workspace({DType::kU8, {second.workspace_bytes + 4096}});
  auto* bytes = workspace.as_mutable<uint8_t>();
  std::memset(bytes, 0xA5, planned + 4096);
  const void* inputs[] = {a.data(), b.data()};
  void* outputs[] = {y.data()};
  ASSERT_TRUE(cpu::RunOnHost(**kernel, {inputs, outputs, bytes}).ok());
  EXPECT_EQ(y, std::vector<float>({3, 3}));
  for (size_t i = planned; i < planned + 4096; ++i) ASSERT_EQ(bytes[i], 0xA5) << i - planned;
}

TEST_F(CpuBackendTest, RefusesAKernelThatNeedsMoreWorkspaceThanIsPlanned) {
  const OpCall call = MakeCall("matmul", {F32({1, 3}), F32({3, 2})}, {});
  KernelChoice choice = Candidates("matmul", call).choices.front();
  const int64_t needed = choice.workspace_bytes;
  if (needed == 0) GTEST_SKIP() << "not on this machine: " << choice.kernel << " has none";
  choice.workspace_bytes = needed - 1;
  const auto kernel = cpu_->Create(*FindOp("matmul"), call, choice);
  ASSERT_FALSE(kernel.ok());
  EXPECT_THAT(kernel.status().message(),
              testing::EndsWith(
                  fmt::format("needs {} B of workspace, {} B are planned", needed, needed - 1)));
}

TEST_F(CpuBackendTest, RefusesNoThreads) { EXPECT_FALSE(MakeCpuBackend(0).ok()); }

TEST_F(CpuBackendTest, TakesOutputsWithoutElements) {
  const OpCall call = MakeCall("relu", {F32({0, 3})}, {});
  auto kernel = cpu_->Create(*FindOp("relu"), call, Candidates("relu", call).choices[0]);
  ASSERT_TRUE(kernel.ok());
  const void* in[] = {nullptr};
  void* out[] = {nullptr};
  EXPECT_TRUE(cpu::RunOnHost(**kernel, {in, out, nullptr}).ok());
}

TEST(CpuLayouts, KnowRowMajorWhateverTheStridesOfExtentsOfOne) {
  const dnnl::memory::desc desc({64, 1, 28, 28}, dnnl::memory::data_type::f32,
                                dnnl::memory::format_tag::acdb);
  EXPECT_EQ(cpu::LayoutOf(desc), kRowMajor);
}

TEST(CpuLayouts, RoundTripThroughDescriptors) {
  const TensorType type = F32({2, 20, 3, 3});
  const auto tag = dnnl::memory::format_tag::aBcd16b;
  const auto id = static_cast<LayoutId>(tag);
  EXPECT_EQ(cpu::LayoutOf(cpu::DescOf(type, id)), id);
  EXPECT_EQ(cpu::LayoutNameOf(id), "aBcd16b");
  EXPECT_EQ(cpu::LayoutBytesOf(type, id), 2 * 32 * 9 * 4);  // 20 channels are padded to 32
  EXPECT_EQ(cpu::LayoutBytesOf(type, kRowMajor), type.bytes());
}

#ifdef RIDGE_COUNTS_ALLOCATIONS

struct StepOp {
  const char* op;
  std::vector<TensorType> inputs;
  AttrMap attrs;
};

// The operators of a step of the CNN and of a normalized one.
std::vector<StepOp> StepOps() {
  const TensorType x = F32({4, 32, 26, 26}), w = F32({10, 512});
  const AttrMap pool = {{"kernel", Ints{2, 2}}, {"stride", Ints{2, 2}}};
  return {{"conv", {F32({4, 1, 28, 28}), F32({32, 1, 3, 3}), F32({32})}, {}},
          {"conv", {x, F32({32, 32, 3, 3})}, {}},
          {"conv_grad_weight",
           {F32({4, 1, 28, 28}), x},
           {{"weight_dims", Ints{32, 1, 3, 3}}, {"bias", int64_t{1}}}},
          {"conv_grad_input", {x, F32({32, 32, 3, 3})}, {{"input_dims", Ints{4, 32, 28, 28}}}},
          {"conv_grad_weight",
           {F32({4, 32, 28, 28}), x},
           {{"weight_dims", Ints{32, 32, 3, 3}}, {"bias", int64_t{1}}}},
          {"max_pool", {x}, pool},
          {"batch_norm", {x, F32({32}), F32({32})}, {}},
          {"relu_grad", {x, x}, {}},
          {"mul", {x, F32({32, 1, 1})}, {}},
          {"reduce_sum", {x}, {{"axes", Ints{0, 2, 3}}}},
          {"matmul", {F32({64, 512}), w, F32({10})}, {{"transpose_b", int64_t{1}}}},
          {"matmul", {F32({64, 10}), F32({64, 512})}, {{"transpose_a", int64_t{1}}}},
          {"softmax_cross_entropy", {F32({64, 10}), {DType::kI64, {64}}}, {}},
          {"adam_update", {w, w, w, w, F32({}), {DType::kI64, {}}}, {}},
          {"layer_norm", {w, F32({512}), F32({512})}, {}},
          {"softmax", {w}, {}},
          {"transpose", {w}, {}}};
}

TEST(CountedAllocations, CountBothWaysOfAllocating) {
  void* memory = nullptr;
  allocated_bytes = 0;
  counting = true;
  const std::unique_ptr<Ints> vector = std::make_unique<Ints>(100);
  const int failed = posix_memalign(&memory, 64, 4096);
  counting = false;
  std::free(memory);
  EXPECT_EQ(failed, 0);
  EXPECT_GE(allocated_bytes, 800 + 4096);
}

TEST_F(CpuBackendTest, RunsWithinTheAllocationsThatTheContractAllows) {
  constexpr int64_t kAllowedBytes = 2048;  // a vendor library's bookkeeping for one node
  for (const StepOp& op : StepOps()) {
    auto call = cpu::TimedCall::Make(*cpu_, op.op, op.inputs, op.attrs);
    ASSERT_TRUE(call.ok()) << call.status().message();
    call->RunOnce();  // the first run may set up a thread's state
    allocated_bytes = 0;
    counting = true;
    call->RunOnce();
    counting = false;
    const int64_t bytes = allocated_bytes;
    const bool ours = call->choice().kernel.rfind("cpu.", 0) == 0;
    EXPECT_LE(bytes, ours ? 0 : kAllowedBytes) << call->choice().key;
  }
}

#endif

}  // namespace
}  // namespace ridge

// Attention and convolutions by a plug-in that runs on the fake driver's streams; and what the real
// one says of a GPU that is not here.
#include <filesystem>
#include <fstream>

#include "ridge/backend/cuda/cudnn/cudnn_call.h"
#include "ridge/backend/cuda/cudnn/cudnn_library.h"
#include "ridge/backend/cuda/layouts.h"
#include "ridge/backend/cuda/libraries.h"
#include "ridge/backend/reference/reference_backend.h"
#include "ridge/core/test_folder.h"
#include "tests/fake_cuda/cudnn/library_backend.h"
#include "tests/fake_cuda/test_driver.h"
#include "tests/ops/case_file.h"
#include "tests/ops/check_backend.h"

namespace ridge::fake_cuda {
namespace {

const Settings kQuick = {{"RIDGE_FAKE_CUDA_DELAY_US", "20"}};
const cuda::LibrarySearch kFakes = {{RIDGE_FAKE_CUDA_FOLDER}, {}};
constexpr double kTolerance = 2e-5;
constexpr int64_t kMostFlops = 400'000, kMostAttentionFlops = 6'000'000;

std::unique_ptr<cuda::KernelLibrary> OpenFake(const FakeGpu& gpu,
                                              const cuda::LibraryOptions& options = {}) {
  auto library = cuda::OpenCudnn(gpu.device->context(), gpu.device->gpu(), kFakes, options);
  EXPECT_TRUE(library.ok()) << library.status().message();
  return std::move(*library);
}

// Calls of an operator's cases that the library runs; each agrees with the reference.
int CheckCases(const std::string& op_name, bool channels_last) {
  const FakeGpu gpu(kQuick);
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  const std::unique_ptr<cuda::KernelLibrary> library = OpenFake(gpu);
  const std::unique_ptr<Backend> backend = MakeLibraryBackend(*reference, *library, gpu);
  const Result<CaseFile> file = ReadCaseFile(std::string(std::getenv("RIDGE_SOURCE_DIR")) +
                                             "/tests/ops/" + op_name + ".case");
  EXPECT_TRUE(file.ok()) << file.status().message();
  const OpDef* op = FindOp(file->op);
  int checked = 0;
  for (const OpCase& op_case : file->cases) {
    if (op_case.kind == OpCase::Kind::kError) continue;
    const Result<OpCall> call = InferCase(*op, op_case);
    EXPECT_TRUE(call.ok()) << call.status().message();
    if (op->cost(*call).flops > (channels_last ? kMostFlops : kMostAttentionFlops)) continue;
    const KernelCandidates found = backend->Candidates(*op, *call, {});
    if (found.choices.empty()) continue;
    EXPECT_EQ(found.choices.size(), channels_last ? 2 : 1);
    int fast = 0;
    EXPECT_EQ(CheckBackend(*backend, *op, op_case, kRowMajor, kTolerance, fast), "")
        << op_name << ":" << op_case.line;
    ++checked;
  }
  return checked;
}

TEST(Cudnn, AttentionAgreesWithTheReference) {
  EXPECT_GE(CheckCases("attention", false), 8);
  EXPECT_GE(CheckCases("attention_grad", false), 4);
}

TEST(Cudnn, ConvolutionsAgreeWithTheReferenceInBothLayouts) {
  EXPECT_GE(CheckCases("conv", true), 14);  // those whose x is aligned as a slice
  EXPECT_GE(CheckCases("conv_grad_input", true), 20);
  EXPECT_GE(CheckCases("conv_grad_weight", true), 11);
}

// ---- what is asked

OpCall Call(const std::string& op_name, std::vector<TensorType> inputs, AttrMap attrs) {
  const OpDef& op = *FindOp(op_name);
  OpCall call{op_name + " 'y'", std::move(inputs), {}, op.attr_defaults};
  for (const auto& [name, value] : attrs) call.attrs[name] = value;
  Result<std::vector<TensorType>> types = op.infer_types(call);
  EXPECT_TRUE(types.ok()) << types.status().message();
  call.outputs = *std::move(types);
  return call;
}

constexpr DType kBF16 = DType::kBF16, kF32 = DType::kF32;

TEST(Cudnn, PackedOperandsAreViewsOfOneTensor) {
  const OpCall call =
      Call("attention", {{kBF16, {2, 5, 3, 4, 16}}, OpCall::Absent(), OpCall::Absent()},
           {{"scale", 0.25}, {"causal", 1}, {"layout", "packed"}});
  cuda::CudnnCall asked;
  ASSERT_EQ(cuda::DescribeAttention(*FindOp("attention"), call, asked), nullptr);
  const RidgeCudnnTensor& v = asked.question.tensors[RIDGE_CUDNN_V];
  EXPECT_EQ(Dims(v.dims, v.dims + 4), (Dims{2, 4, 5, 16}));
  EXPECT_EQ(Dims(v.strides, v.strides + 4), (Dims{5 * 3 * 64, 16, 3 * 64, 1}));
  EXPECT_EQ(asked.operands[RIDGE_CUDNN_V].index, 0u);
  EXPECT_EQ(asked.operands[RIDGE_CUDNN_V].offset_bytes, 2 * 64 * 2);
}

std::string AttentionRefusal(std::vector<TensorType> inputs, AttrMap attrs) {
  attrs["scale"] = 1.0;
  const OpCall call = Call("attention", std::move(inputs), std::move(attrs));
  cuda::CudnnCall asked;
  const char* const reason = cuda::DescribeAttention(*FindOp("attention"), call, asked);
  return reason == nullptr ? "" : reason;
}

TEST(Cudnn, WhatItDoesOtherwiseIsNotAsked) {
  const TensorType q{kBF16, {1, 2, 4, 8}}, k{kBF16, {1, 2, 6, 8}};
  EXPECT_EQ(AttentionRefusal({q, k, k}, {}), "");
  EXPECT_EQ(AttentionRefusal({q, k, k}, {{"causal", 1}}), "");
  EXPECT_EQ(AttentionRefusal({q, k, k}, {{"causal", 1}, {"causal_offset", 2}}), "");
  EXPECT_EQ(AttentionRefusal({q, k, k}, {{"causal", 1}, {"causal_offset", -1}}),
            "cuDNN: attribute value");
  EXPECT_EQ(AttentionRefusal({q, k, k}, {{"softcap", 2.0}}), "cuDNN: attribute value");
  EXPECT_EQ(AttentionRefusal({q, k, k, {DType::kBool, {1, 1, 1, 6}}}, {}), "cuDNN: mask");
  const TensorType odd{kBF16, {1, 2, 6, 12}};
  EXPECT_EQ(AttentionRefusal({q, k, odd}, {}), "cuDNN: head width");
  EXPECT_EQ(AttentionRefusal({odd, odd, k}, {}), "cuDNN: head width");
  const TensorType wide{kF32, {1, 2, 4, 8}};
  EXPECT_EQ(AttentionRefusal({wide, wide, wide}, {}), "cuDNN: dtype");
  const TensorType none{kBF16, {0, 2, 4, 8}};
  EXPECT_EQ(AttentionRefusal({none, none, none}, {}), "cuDNN: empty tensor");
}

TEST(Cudnn, AConvolutionsFirstChoiceIsInChannelsLast) {
  const FakeGpu gpu(kQuick);
  const std::unique_ptr<cuda::KernelLibrary> library = OpenFake(gpu);
  const OpCall call =
      Call("conv", {{kBF16, {2, 8, 6, 6}}, {kBF16, {16, 8, 3, 3}}, {kF32, {16}}}, {});
  KernelCandidates found;
  library->AddCandidates(*FindOp("conv"), call, {}, found);
  ASSERT_EQ(found.choices.size(), 2u);
  EXPECT_EQ(found.choices[0].kernel, "cudnn.conv/channels_last:fake2");
  const LayoutId last = cuda::kChannelsLast;
  EXPECT_EQ(found.choices[0].input_layouts, (std::vector<LayoutId>{last, last, kRowMajor}));
  EXPECT_EQ(found.choices[0].output_layouts, (std::vector<LayoutId>{last}));
  EXPECT_EQ(found.choices[1].kernel, "cudnn.conv/fake2");
  EXPECT_EQ(found.choices[1].input_layouts, std::vector<LayoutId>(3, kRowMajor));
  EXPECT_FALSE(library->GivesF32Sums(*FindOp("conv")));
}

TEST(Cudnn, AChoiceOfAnotherVersionIsRefused) {
  const FakeGpu gpu(kQuick);
  const std::unique_ptr<cuda::KernelLibrary> library = OpenFake(gpu);
  const OpDef& op = *FindOp("conv");
  const OpCall call = Call("conv", {{kF32, {1, 4, 5, 5}}, {kF32, {4, 4, 3, 3}}}, {});
  KernelCandidates found;
  library->AddCandidates(op, call, {}, found);
  KernelChoice choice = found.choices.at(1);
  EXPECT_TRUE(library->Create(op, call, choice).ok());
  choice.workspace_bytes = 10;
  EXPECT_EQ(library->Create(op, call, choice).status().message(),
            "conv 'y': cuDNN 9.19.0 (" RIDGE_FAKE_CUDA_FOLDER
            "/libcudnn.so.9) has no cudnn.conv/fake2 of 10 bytes of workspace for it");
}

// ---- what is not found

std::vector<std::string> SaidOf(const cuda::LibrarySearch& search, const Settings& settings) {
  const FakeGpu gpu(kQuick);
  const Variables variables(settings);
  std::vector<std::string> said;
  (void)cuda::OpenLibraries(*gpu.device, search,
                            [&](const std::string& text) { said.push_back(text); });
  return said;
}

TEST(Cudnn, WithoutItASentenceSaysWhatRunsInstead) {
  const std::string folder = RIDGE_FAKE_CUDA_FOLDER, what = "attention and convolutions";
  const std::string ours = what + " run on our own kernels: ";
  const std::string build =
      "hint: a wheel or tarball of ridge, or in its source tree scripts/build_cudnn_plugin.sh";
  EXPECT_THAT(SaidOf(kFakes, {}),
              testing::Contains(what + " run on cuDNN 9.19.0 (" + folder + "/libcudnn.so.9)"));
  const TempFolder empty;
  EXPECT_THAT(SaidOf({{empty.File("")}, {}}, {}),
              testing::Contains(ours + "libridge_cudnn.so is not found. " + build));
  const std::string broken = empty.Write("libridge_cudnn.so", "text");
  EXPECT_THAT(SaidOf({{empty.path()}, {}}, {}),
              testing::Contains(ours + broken + " does not load: file too short. " + build));
  EXPECT_THAT(SaidOf(kFakes, {{"RIDGE_FAKE_CUDNN_ABI", "7"}}),
              testing::Contains(ours + folder +
                                "/libridge_cudnn.so has interface 7; this program "
                                "has 2. " +
                                build));
  EXPECT_THAT(SaidOf(kFakes, {{"RIDGE_FAKE_CUDNN_VERSION", "91300"}}),
              testing::Contains(ours + folder +
                                "/libcudnn.so.9 is cuDNN 9.13.0; 9.14.0 is the least. hint: pip "
                                "install nvidia-cudnn-cu13, or set RIDGE_CUDA_PATH to its folder"));
}

TEST(Cudnn, PartsOfAnotherInstallationAreRefused) {
  const FakeGpu gpu(kQuick);
  const TempFolder other;
  const std::string shim = std::string(RIDGE_FAKE_CUDA_FOLDER) + "/libcudnn.so.9",
                    part = other.File("libcudnn_ops.so.9");
  std::filesystem::copy_file(std::string(RIDGE_FAKE_CUDA_FOLDER) + "/libcudart.so.13", part);
  const auto refusal = [&](const Settings& settings) {
    const Variables variables(settings);
    return cuda::OpenLibraries(*gpu.device, kFakes, [](const std::string&) {}).status();
  };
  const Status fails = refusal({{"RIDGE_FAKE_CUDNN_PART_FAILS", "3"}});
  EXPECT_EQ(fails.code(), ErrorCode::kDevice);
  EXPECT_EQ(fails.message(),
            shim +
                " has parts of another version: cudnnOpsVersionCheck fails. hint: pip install "
                "--force-reinstall nvidia-cudnn-cu13, or set RIDGE_CUDA_PATH to a whole cuDNN");
  const Status mixed = refusal({{"RIDGE_FAKE_CUDNN_PART", part}});
  EXPECT_EQ(mixed.code(), ErrorCode::kDevice);
  EXPECT_EQ(mixed.message(), "two cuDNNs are mixed: " + shim + " has opened " + part +
                                 ". hint: take " + other.File("").substr(0, part.rfind('/')) +
                                 " out of LD_LIBRARY_PATH, or uninstall one of them");
}

TEST(Cudnn, WorkThatFailsIsAnErrorThatStays) {
  const FakeGpu gpu(kQuick);
  const Variables variables(Settings{{"RIDGE_FAKE_CUDNN_FAIL", "1"}});
  const std::unique_ptr<cuda::KernelLibrary> library = OpenFake(gpu);
  const OpDef& op = *FindOp("conv");
  const OpCall call = Call("conv", {{kF32, {1, 4, 3, 3}}, {kF32, {1, 4, 3, 3}}}, {});
  KernelCandidates found;
  library->AddCandidates(op, call, {}, found);
  const auto kernel = library->Create(op, call, found.choices.at(0));
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  const std::vector<const void*> in = {nullptr, nullptr, nullptr};
  const std::vector<void*> out = {nullptr};
  const Status status = (*kernel)->Enqueue(gpu.device->stream(0), {in, out, nullptr});
  EXPECT_EQ(status.code(), ErrorCode::kDevice);
  EXPECT_EQ(status.message(),
            "cuda:0: cuDNN fake2: asked to fail. hint: --kernel-launch sync names the node, and "
            "compute-sanitizer the kernel");
  EXPECT_EQ(gpu.device->stream(0).Synchronize().message(), status.message());
}

TEST(Cudnn, SlicesOfABatchThatBeginAnywhereAreNotItsOwn) {
  for (const auto& [extent, alignment] : {std::pair(28, 16), {26, 8}, {27, 2}}) {
    const OpCall call = Call("conv", {{kBF16, {1, 1, extent, extent}}, {kBF16, {16, 1, 3, 3}}}, {});
    cuda::CudnnCall asked;
    ASSERT_EQ(cuda::DescribeConv(*FindOp("conv"), call, kRowMajor, asked), nullptr);
    EXPECT_EQ(asked.question.tensors[RIDGE_CUDNN_X].alignment, alignment);
    EXPECT_EQ(asked.question.tensors[RIDGE_CUDNN_Y].alignment, 16);
  }
}

TEST(Cudnn, ItsOtherEnginesAreOfferedWhereTheyAreTimed) {
  const FakeGpu gpu(kQuick);
  const auto library = OpenFake(gpu, {.all_kernels = true});
  const OpDef& op = *FindOp("conv");
  const OpCall call = Call("conv", {{kF32, {2, 4, 6, 6}}, {kF32, {8, 4, 3, 3}}}, {});
  KernelCandidates found;
  library->AddCandidates(op, call, {}, found);
  std::vector<std::string> kernels;
  for (const KernelChoice& choice : found.choices) {
    kernels.push_back(choice.kernel);
    const auto kernel = library->Create(op, call, choice);
    EXPECT_TRUE(kernel.ok()) << kernel.status().message();
  }
  EXPECT_EQ(kernels, (std::vector<std::string>{"cudnn.conv/channels_last:fake2",
                                               "cudnn.conv/channels_last:fake2_k3",
                                               "cudnn.conv/fake2", "cudnn.conv/fake2_k3"}));
}

// ---- the real one, where it was built and cuDNN is installed

TEST(Cudnn, TheRealOneHasConvolutionsForAnH200) {
  std::ifstream file(std::string(std::getenv("RIDGE_SOURCE_DIR")) +
                     "/plugins/cudnn/devices/h200-sxm.json");
  const std::string device{std::istreambuf_iterator<char>(file), {}};
  cuda::LibrarySearch search = cuda::SearchForToolkit();
  // Before what the process has open: the fakes.
  for (const auto* more : {&search.middle, &search.behind})
    search.before.insert(search.before.end(), more->begin(), more->end());
  const auto session = cuda::CudnnSession::Open(search, 90, device.c_str());
  if (!session.ok()) GTEST_SKIP() << "not on this machine: " << session.status().message();
  for (const char* name : {"conv", "conv_grad_input", "conv_grad_weight"}) {
    const TensorType x{kBF16, {32, 64, 56, 56}}, w{kBF16, {64, 64, 3, 3}};
    const bool is_conv = std::string(name) == "conv",
               is_dx = std::string(name) == "conv_grad_input";
    AttrMap attrs = {{"padding", std::vector<int64_t>{1, 1, 1, 1}}};
    if (is_dx) attrs["input_dims"] = x.dims;
    if (!is_conv && !is_dx) attrs["weight_dims"] = w.dims;
    const OpCall call = Call(name, {x, is_conv || is_dx ? w : x}, attrs);
    cuda::CudnnCall asked;
    ASSERT_EQ(cuda::DescribeConv(*FindOp(name), call, cuda::kChannelsLast, asked), nullptr);
    asked.question.same_bits = 1;
    const auto plan = (*session)->Make(asked.question);
    ASSERT_TRUE(plan.ok()) << name << ": " << plan.status().message();
    EXPECT_TRUE((*plan)->name().starts_with("eng")) << (*plan)->name();
    EXPECT_LT((*plan)->workspace_bytes(), 1 << 20) << name;  // nothing is copied
    constexpr size_t kMost = 3;
    const auto several = (*session)->MakeSeveral(asked.question, kMost);
    ASSERT_TRUE(several.ok()) << name << ": " << several.status().message();
    EXPECT_EQ(several->front()->name(), (*plan)->name());
    EXPECT_EQ(several->size(), kMost) << name;
    asked.question.tensors[RIDGE_CUDNN_Y].strides[1] = -1;
    EXPECT_FALSE((*session)->Make(asked.question).ok());
  }
}

}  // namespace
}  // namespace ridge::fake_cuda

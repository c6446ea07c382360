// Products by a cuBLASLt that computes on the host, as its descriptors say.
#include <filesystem>

#include "ridge/backend/cuda/cublaslt/matmul_library.h"
#include "ridge/backend/cuda/cublaslt/product.h"
#include "ridge/backend/cuda/cuda_backend.h"
#include "ridge/backend/cuda/libraries.h"
#include "ridge/backend/forwarding_backend.h"
#include "ridge/core/test_folder.h"
#include "tests/fake_cuda/test_driver.h"
#include "tests/ops/case_file.h"
#include "tests/ops/check_backend.h"

namespace ridge::fake_cuda {
namespace {

const cuda::LibrarySearch kFakeFolder = {{RIDGE_FAKE_CUDA_FOLDER}, {}};
const Settings kAtOnce = {{"RIDGE_FAKE_CUDA_DELAY_US", "0"}};

const OpDef& Matmul() { return *FindOp("matmul"); }

// A call as the case files write it: "f32[2,3], f32[3,4] transpose_a=1".
OpCall CallOf(const std::string& text) {
  const Result<CaseFile> file = ParseCaseFile("case " + text + "\n", "matmul.case");
  RIDGE_CHECK(file.ok(), file.status().message());
  const Result<OpCall> call = InferCase(Matmul(), file->cases[0]);
  RIDGE_CHECK(call.ok(), call.status().message());
  return *call;
}

// The backend with cuBLASLt's kernels alone.
class LtOnly : public ForwardingBackend {
 public:
  explicit LtOnly(Backend& inner) : ForwardingBackend(inner) {}
  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override {
    KernelCandidates found = inner_.Candidates(op, call, available);
    std::erase_if(found.choices, [](const KernelChoice& choice) {
      return !choice.kernel.starts_with("cublaslt.");
    });
    return found;
  }
};

struct Opened {
  explicit Opened(Settings settings, const cuda::LibraryOptions& options = {})
      : gpu(std::move(settings)) {
    Result<cuda::KernelCompiler> compiler =
        cuda::KernelCompiler::Open(gpu.device->gpu(), cache.File("cubin"), kFakeFolder);
    RIDGE_CHECK(compiler.ok(), compiler.status().message());
    Result<cuda::KernelLibraries> libraries = cuda::OpenLibraries(
        *gpu.device, kFakeFolder, [](const std::string&) {}, options);
    RIDGE_CHECK(libraries.ok(), libraries.status().message());
    backend = cuda::MakeCudaBackend(*gpu.device, *std::move(compiler), std::move(*libraries));
  }

  KernelCandidates Ask(const OpCall& call) {
    return backend->Candidates(Matmul(), call, std::vector<LayoutId>(call.inputs.size()));
  }
  bool Takes(const OpCall& call) { return Ask(call).refusals.empty(); }
  // "cublaslt.matmul/algo1_tile18", or the library's refusal.
  std::string FirstOf(const std::string& call) {
    const KernelCandidates found = Ask(CallOf(call));
    return found.refusals.empty() ? found.choices.at(0).kernel : found.refusals[0].reason;
  }

  const TempFolder cache;
  const Variables of_cache{Settings{{"XDG_CACHE_HOME", cache.File("user")}}};
  const FakeGpu gpu;
  std::unique_ptr<Backend> backend;
};

TEST(CublasLt, AgreesWithTheReferenceOnAllCasesOfMatmul) {
  const Result<CaseFile> file = ReadCaseFile("tests/ops/matmul.case");
  ASSERT_TRUE(file.ok()) << file.status().message();
  for (const char* lazy : {"0", "1"}) {
    int fast = 0;
    {
      Opened opened(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "20"}, {"RIDGE_FAKE_CUDA_LAZY", lazy}});
      LtOnly backend(*opened.backend);
      for (const OpCase& one : file->cases) {
        if (one.kind == OpCase::Kind::kError || !opened.Takes(*InferCase(Matmul(), one))) continue;
        EXPECT_EQ(CheckBackend(backend, Matmul(), one, kRowMajor, /*tolerance=*/2e-5, fast), "")
            << "matmul.case:" << one.line;
      }
    }
    EXPECT_GE(fast, 68);
    EXPECT_EQ(Hooks(*LoadFake()).alive(), 0);
  }
}

TEST(CublasLt, TakesWhatItsDescriptorsSayAndNamesTheRest) {
  Opened opened(kAtOnce);
  EXPECT_EQ(opened.FirstOf("f32[2,3], f32[3,4]"), "cublaslt.matmul/algo1_tile18");
  EXPECT_EQ(opened.FirstOf("bf16[2,3], bf16[3,4], f32[4]"), "cublaslt.matmul/algo1_tile18");
  EXPECT_EQ(opened.FirstOf("f32[2,3], f32[3,4], f32[4] epilogue=\"relu\""),
            "cublaslt.matmul/algo1_tile18");
  EXPECT_EQ(opened.FirstOf("f32[2,3], f32[3,4], _, f32[2,4] epilogue=\"add\""),
            "cublaslt.matmul/algo1_tile18");
  EXPECT_EQ(opened.FirstOf("f32[2,3], f32[3,4] epilogue=\"gelu\""), "epilogue step");
  EXPECT_EQ(opened.FirstOf("i8[2,3], i8[3,4]"), "dtype");
  EXPECT_EQ(opened.FirstOf("f32[2,0], f32[0,4]"), "no elements");
  EXPECT_EQ(opened.FirstOf("f32[2,1,5,4], f32[3,4,2]"), "batch without one stride");
}

TEST(CublasLt, ItsOtherAlgorithmsAreOfferedWhereTheyAreTimed) {
  Opened opened(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "20"}}, {.all_kernels = true});
  const Result<CaseFile> file = ReadCaseFile("tests/ops/matmul.case");
  ASSERT_TRUE(file.ok()) << file.status().message();
  const OpCall call = CallOf("f32[64,3], f32[3,64]");
  std::vector<std::string> kernels;
  for (const KernelChoice& choice : opened.Ask(call).choices) {
    if (!choice.kernel.starts_with("cublaslt.")) continue;
    kernels.push_back(choice.kernel);
    EXPECT_EQ(choice.key, choice.kernel + " " + CallKey(Matmul(), call));
    EXPECT_EQ(choice.efficiency, 1);  // the first is taken where nothing was timed
  }
  EXPECT_EQ(kernels,
            (std::vector<std::string>{"cublaslt.matmul/algo1_tile18",
                                      "cublaslt.matmul/algo2_tile20_splits3_reduction2_cluster5"}));
  LtOnly backend(*opened.backend);
  int fast = 0;  // each choice that is offered runs
  for (const OpCase& one : file->cases) {
    if (one.kind == OpCase::Kind::kError || !opened.Takes(*InferCase(Matmul(), one))) continue;
    EXPECT_EQ(CheckBackend(backend, Matmul(), one, kRowMajor, /*tolerance=*/2e-5, fast), "")
        << "matmul.case:" << one.line;
  }
  EXPECT_GE(fast, 2 * 68);
}

TEST(CublasLt, WhatItCannotJoinStaysTwoNodes) {
  Opened opened(kAtOnce);
  const RewriteRules& rules = opened.backend->rules();
  EXPECT_TRUE(rules.Fuses(Matmul(), CallOf("f32[2,3], f32[3,4] epilogue=\"relu\"")));
  EXPECT_FALSE(rules.Fuses(Matmul(), CallOf("f32[2,3], f32[3,4] epilogue=\"gelu\"")));
  EXPECT_EQ(rules.MultipleOfProducts().needed, 8);
}

cuda::Product ProductOf(const std::string& call) {
  cuda::Product product;
  EXPECT_EQ(cuda::DescribeProduct(CallOf(call), /*tf32=*/false, product), nullptr);
  return product;
}

TEST(CublasLtProduct, OneBUnderABatchIsOneProductOfAllRows) {
  const cuda::Product product = ProductOf("f32[3,5,4], f32[4,2]");
  EXPECT_EQ(product.a.rows, 15);
  EXPECT_EQ(product.y.rows, 15);
  EXPECT_EQ(product.y.batch, 1);
}

TEST(CublasLtProduct, AnOperandThatIsRepeatedHasNoStride) {
  const cuda::Product product = ProductOf("f32[5,4], f32[3,4,2]");
  EXPECT_EQ(product.y.batch, 3);
  EXPECT_EQ(product.a.batch_stride, 0);
  EXPECT_EQ(product.b.batch_stride, 8);
  EXPECT_EQ(product.y.batch_stride, 10);
}

TEST(CublasLtProduct, MatricesOfABatchAreAlignedAsTheirOffsetsAre) {
  const cuda::Product product = ProductOf("bf16[3,8,4], bf16[3,4,5] transpose_a=0");
  EXPECT_EQ(product.a.AlignmentBytes(256), 64);  // 32 elements
  EXPECT_EQ(product.b.AlignmentBytes(256), 8);
}

TEST(CublasLtProduct, AMatrixIsAlignedAsASliceOfItsSizeIs) {
  const cuda::Product product = ProductOf("f32[4,12], f32[12,64]");
  EXPECT_EQ(product.a.AlignmentBytes(256), 64);  // the second slice begins at 192
  EXPECT_EQ(product.b.AlignmentBytes(256), 256);
  EXPECT_EQ(ProductOf("bf16[3,5], bf16[5,7]").a.AlignmentBytes(256), 2);
}

TEST(CublasLt, TheSameQuestionHasTheSameAnswer) {
  Opened opened(kAtOnce);
  const OpCall call = CallOf("bf16[8,100], bf16[100,8], f32[8]");
  const KernelChoice first = opened.Ask(call).choices.at(0), again = opened.Ask(call).choices.at(0);
  EXPECT_EQ(first.workspace_bytes, 256 + 4096);  // the bias in bf16, and cuBLASLt's
  EXPECT_EQ(again.workspace_bytes, first.workspace_bytes);
  EXPECT_EQ(again.key, first.key);
  EXPECT_TRUE(opened.backend->Create(Matmul(), call, first).ok());
  KernelChoice other = first;
  other.workspace_bytes = 0;
  EXPECT_EQ(opened.backend->Create(Matmul(), call, other).status().code(), ErrorCode::kUnsupported);
}

TEST(CublasLt, RoundsToTf32OnlyWhereItIsAsked) {
  const OpCall call = CallOf("f32[1,1], f32[1,1]");
  for (const bool tf32 : {false, true}) {
    Opened opened(kAtOnce, {.tf32 = tf32});
    const KernelChoice choice = opened.Ask(call).choices.at(0);
    Result<std::unique_ptr<Kernel>> kernel = opened.backend->Create(Matmul(), call, choice);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    const auto memory = Allocated(*opened.gpu.device, 4096);
    Stream& stream = opened.gpu.device->stream(0);
    const float operand = 1 + 0x1p-12F;
    float result = 0;
    stream.Upload(memory->data(), &operand, sizeof operand);
    const void* const inputs[] = {memory->data(), memory->data()};
    void* const output = memory->data() + 256;
    ASSERT_TRUE((*kernel)->Enqueue(stream, {inputs, {&output, 1}, nullptr}).ok());
    stream.Download(&result, output, sizeof result);
    ASSERT_TRUE(stream.Synchronize().ok());
    EXPECT_EQ(result, tf32 ? 1 : operand * operand);
  }
}

// What is said of products.
std::string SaidOf(const cuda::LibrarySearch& search, const Settings& settings) {
  const FakeGpu gpu(kAtOnce);
  const Variables variables(settings);
  std::string said;
  (void)cuda::OpenLibraries(*gpu.device, search, [&](const std::string& text) {
    if (text.starts_with("products ")) said += text;
  });
  return said;
}

TEST(CublasLt, SaysItsVersionOrWhatRunsWithoutIt) {
  const std::string folder = RIDGE_FAKE_CUDA_FOLDER, ours = "products run on our own kernels: ";
  EXPECT_EQ(SaidOf(kFakeFolder, {}),
            "products run on cuBLASLt 13.1.0 (" + folder + "/libcublasLt.so.13)");
  EXPECT_EQ(SaidOf(kFakeFolder, {{"RIDGE_FAKE_CUBLASLT_FAIL", "cublasLtCreate:1:1"}}),
            ours + "cublasLtCreate failed: CUBLAS_STATUS_NOT_INITIALIZED (1)");
  const TempFolder broken;
  const std::string file = broken.File("libcublasLt.so.13");
  std::filesystem::copy_file(folder + "/libridge_partial_cuda.so", file);
  EXPECT_EQ(SaidOf({{broken.File("")}, {}}, {}),
            ours + file + " has no cublasLtCreate. hint: pip install --upgrade nvidia-cublas");
}

TEST(CublasLt, AChoiceThatItDoesNotHaveIsNamed) {
  const FakeGpu gpu(kAtOnce);
  const auto opened = cuda::OpenCublasLt(*gpu.device, kFakeFolder, {});
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const auto refusal = [&](const OpCall& call) {
    KernelChoice choice;
    choice.kernel = "cublaslt.matmul/algo7_tile18";
    choice.workspace_bytes = 10;
    return (*opened)->Create(Matmul(), call, choice).status().message();
  };
  const std::string text = "cuBLASLt 13.1.0 (" RIDGE_FAKE_CUDA_FOLDER
                           "/libcublasLt.so.13) has no cublaslt.matmul/algo7_tile18 of 10 bytes of "
                           "workspace for it";
  const OpCall call = CallOf("f32[2,3], f32[3,4]");
  EXPECT_EQ(refusal(call), call.where + ": " + text);
  EXPECT_EQ(refusal(CallOf("i8[2,3], i8[3,4]")), call.where + ": " + text + ": dtype");
}

TEST(CublasLt, ItsErrorStaysAndHasItsName) {
  Opened opened(kAtOnce);
  const OpCall call = CallOf("f32[2,3], f32[3,4]");
  const KernelChoice choice = opened.Ask(call).choices.at(0);
  Result<std::unique_ptr<Kernel>> kernel = opened.backend->Create(Matmul(), call, choice);
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  const auto memory = Allocated(*opened.gpu.device, 4096);
  Stream& stream = opened.gpu.device->stream(0);
  const void* const inputs[] = {memory->data(), memory->data() + 256};
  void* const output = memory->data() + 512;
  const Variables fails(Settings{{"RIDGE_FAKE_CUBLASLT_FAIL", "cublasLtMatmul:1:13"}});
  const std::string text =
      "cuda:0: cublasLtMatmul failed: CUBLAS_STATUS_EXECUTION_FAILED (13). hint: --kernel-launch "
      "sync names the node, and compute-sanitizer the kernel";
  const Status status = (*kernel)->Enqueue(stream, {inputs, {&output, 1}, nullptr});
  EXPECT_EQ(status.code(), ErrorCode::kDevice);
  EXPECT_EQ(status.message(), text);
  EXPECT_EQ(stream.Synchronize().message(), text);
  EXPECT_EQ((*kernel)->Enqueue(stream, {inputs, {&output, 1}, nullptr}).message(), text);
}

}  // namespace
}  // namespace ridge::fake_cuda

// Operators and a training on CudaDevice, with kernels that run on the host: what the executor, the
// transfers and the streams do is what they will do with CUDA's kernels.
#include <fstream>

#include "ridge/backend/cpu/nominal_profile.h"
#include "ridge/backend/cuda/cuda_backend.h"
#include "ridge/backend/cuda/libraries.h"
#include "ridge/backend/reference/reference_backend.h"
#include "ridge/core/instructions.h"
#include "ridge/core/test_folder.h"
#include "ridge/train/loop/test_support.h"
#include "ridge/train/loop/trainer.h"
#include "tests/fake_cuda/test_backend.h"
#include "tests/ops/case_file.h"
#include "tests/ops/check_backend.h"

namespace ridge::fake_cuda {
namespace {

const Settings kQuick = {{"RIDGE_FAKE_CUDA_DELAY_US", "0"}};

TEST(CudaConformance, OperatorsAgreeWithTheReference) {
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  const FakeGpu gpu(kQuick);
  const std::unique_ptr<Backend> backend = MakeCudaBackend(*reference, gpu);
  const std::string folder = std::string(std::getenv("RIDGE_SOURCE_DIR")) + "/tests/ops/";
  constexpr int kMostCases = 5;  // each has an arena of its own
  for (const char* name : {"matmul", "softmax", "layer_norm", "conv", "gather", "dropout"}) {
    const Result<CaseFile> file = ReadCaseFile(folder + name + ".case");
    ASSERT_TRUE(file.ok()) << file.status().message();
    const OpDef* op = FindOp(file->op);
    int cases = 0;
    for (const OpCase& op_case : file->cases) {
      if (op_case.kind == OpCase::Kind::kError || ++cases > kMostCases) continue;
      int fast = 0;
      EXPECT_EQ(CheckBackend(*backend, *op, op_case, kRowMajor, /*tolerance=*/0, fast), "")
          << name << ":" << op_case.line;
    }
  }
}

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Left {
  std::vector<double> losses;
  std::string parameters, state;
};

Result<Left> TrainOn(Backend& backend, const std::string& model,
                     const std::string& precision = "f32", int64_t steps = 6) {
  const TempFolder folder;
  TrainRequest request;
  request.options.model = model;
  request.options.data = "synthetic";
  request.options.batch = 2;
  request.options.steps = steps;
  request.options.precision = precision;
  request.options.slices = "1";
  request.options.recompute = "off";
  request.options.out = folder.File("run");
  request.rehearse_s = 0;
  Machine machine;
  machine.backend = &backend;
  machine.profile = NominalProfile(1, UsedInstructions());
  machine.profile.id = "test";
  machine.inter_op = {.streams = 2, .always = true};
  Recorder recorder;
  RIDGE_ASSIGN_OR_RETURN(const TrainOutcome outcome, Train(request, machine, recorder));
  const std::string checkpoint =
      outcome.folder + "/checkpoints/step-" + std::to_string(outcome.step) + "/";
  return Left{recorder.losses, Bytes(checkpoint + "parameters.safetensors"),
              Bytes(checkpoint + "state.safetensors")};
}

constexpr const char* kModels[] = {"mlp:hidden=8,layers=1,inputs=12,classes=3",
                                   "gpt:vocab=20,context=4,hidden=8,layers=1,heads=2"};

TEST(CudaTraining, LeavesTheBitsOfTheSameKernelsOnTheHost) {
  for (const auto& [model, lazy] : {std::pair(kModels[0], "0"), std::pair(kModels[0], "1"),
                                    std::pair(kModels[1], "0"), std::pair(kModels[1], "1")}) {
    const std::unique_ptr<Backend> reference = MakeReferenceBackend();
    const Result<Left> want = TrainOn(*reference, model);
    ASSERT_TRUE(want.ok()) << want.status().message();
    int64_t kernels = 0;
    {
      const FakeGpu gpu(
          Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "20"}, {"RIDGE_FAKE_CUDA_LAZY", lazy}});
      const Result<Left> have = TrainOn(*MakeCudaBackend(*reference, gpu), model);
      ASSERT_TRUE(have.ok()) << have.status().message();
      EXPECT_EQ(want->losses, have->losses);
      EXPECT_TRUE(want->parameters == have->parameters) << model;
      EXPECT_TRUE(want->state == have->state) << model;
      kernels = gpu.hooks.calls("cuLaunchKernel");
      EXPECT_GT(gpu.hooks.calls("cuGraphLaunch"), 4);  // the steps after the first of each slot
    }
    EXPECT_GT(kernels, 20);
    EXPECT_EQ(Hooks(*LoadFake()).alive(), 0);
  }
}

// The largest difference of two equally long lists, over the largest number of the first.
double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0, apart = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i]));
    apart = std::max(apart, std::abs(a[i] - b[i]));
  }
  return a.size() == b.size() ? apart / largest : 1;
}

const cuda::LibrarySearch kFakeFolder = {{RIDGE_FAKE_CUDA_FOLDER}, {}};

// With kernels of CUDA, cached in `folder`, and NVIDIA's libraries where `libraries` says so.
Result<Left> TrainOnCuda(const FakeGpu& gpu, const std::string& model, const std::string& folder,
                         bool libraries, const std::string& precision = "f32", int64_t steps = 6) {
  RIDGE_ASSIGN_OR_RETURN(cuda::KernelCompiler compiler,
                         cuda::KernelCompiler::Open(gpu.device->gpu(), folder, kFakeFolder));
  cuda::KernelLibraries opened;
  if (libraries) {
    RIDGE_ASSIGN_OR_RETURN(
        opened, cuda::OpenLibraries(*gpu.device, kFakeFolder, [](const std::string&) {}));
  }
  EXPECT_EQ(opened.empty(), !libraries);
  return TrainOn(*cuda::MakeCudaBackend(*gpu.device, std::move(compiler), std::move(opened)), model,
                 precision, steps);
}

void ExpectTrainsAsTheReference(const std::string& model, bool libraries) {
  const TempFolder cache;
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  const Result<Left> want = TrainOn(*reference, model);
  ASSERT_TRUE(want.ok()) << want.status().message();
  std::optional<Left> first;
  for (const char* lazy : {"0", "1"}) {
    const FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "20"}, {"RIDGE_FAKE_CUDA_LAZY", lazy}});
    const Result<Left> have = TrainOnCuda(gpu, model, cache.File("cubin"), libraries);
    ASSERT_TRUE(have.ok()) << have.status().message();
    EXPECT_LT(Distance(want->losses, have->losses), 1e-5) << model;
    if (first) {
      EXPECT_TRUE(first->parameters == have->parameters) << model;
    }
    first = *have;
  }
  EXPECT_EQ(Hooks(*LoadFake()).alive(), 0);
}

TEST(CudaTraining, OurKernelsTrainAsTheReferenceDoes) {
  for (const char* model : {kModels[0], kModels[1], "cnn:filters=2,image=8"})
    ExpectTrainsAsTheReference(model, /*libraries=*/false);
}

// The logits are padded: 1,027 is no multiple of 8.
TEST(CudaTraining, ProductsByCublasLtTrainAsTheReferenceDoes) {
  ExpectTrainsAsTheReference("mlp:hidden=8,layers=1,inputs=12,classes=1027", /*libraries=*/true);
}

// Products, attention and what is stored between them in f16.
TEST(CudaTraining, InF16TrainsAsTheReferenceDoes) {
  constexpr int64_t kSteps = 2;
  const TempFolder cache;
  const std::string model = "gpt:vocab=16,context=64,hidden=64,layers=1,heads=1";
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  const Result<Left> f32 = TrainOn(*reference, model, "f32", kSteps);
  const Result<Left> f16 = TrainOn(*reference, model, "f16", kSteps);
  ASSERT_TRUE(f32.ok() && f16.ok()) << f16.status().message();
  EXPECT_NE(f32->losses, f16->losses);
  EXPECT_LT(Distance(f32->losses, f16->losses), 1e-3);
  for (const bool libraries : {false, true}) {
    const FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"}});
    const Result<Left> have =
        TrainOnCuda(gpu, model, cache.File("cubin"), libraries, "f16", kSteps);
    ASSERT_TRUE(have.ok()) << have.status().message();
    EXPECT_LT(Distance(f16->losses, have->losses), 1e-3) << libraries;
  }
}

TEST(CudaTraining, AFailedKernelEndsTheRunWithTheDriversError) {
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  {
    const FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"},
                               {"RIDGE_FAKE_CUDA_FAIL", "cuLaunchKernel:30:700"}});
    const Status status = TrainOn(*MakeCudaBackend(*reference, gpu), kModels[0]).status();
    EXPECT_EQ(status.code(), ErrorCode::kDevice);
    EXPECT_NE(status.message().find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), std::string::npos)
        << status.message();
  }
  EXPECT_EQ(Hooks(*LoadFake()).alive(), 0);
}

TEST(CudaTraining, ThatDoesNotFitIsRefusedBeforeTheFirstStep) {
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  const FakeGpu gpu(
      Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"}, {"RIDGE_FAKE_CUDA_BYTES", "4194304"}});
  const std::string model = "mlp:hidden=800,layers=2,inputs=784,classes=3";
  const Status status = TrainOn(*MakeCudaBackend(*reference, gpu), model).status();
  EXPECT_EQ(status.code(), ErrorCode::kDeviceMemory) << status.message();
  EXPECT_EQ(gpu.hooks.calls("cuLaunchKernel"), 0);
}

}  // namespace
}  // namespace ridge::fake_cuda

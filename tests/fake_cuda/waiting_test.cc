// Kernels one at a time: an error that a GPU tells only when it is waited for has the name of the
// node that made it.
#include "ridge/backend/cuda/cuda_backend.h"
#include "ridge/backend/cuda/layouts.h"
#include "ridge/backend/cuda/libraries.h"
#include "ridge/core/test_folder.h"
#include "ridge/plan/lower.h"
#include "ridge/runtime/step_kernels.h"
#include "tests/fake_cuda/test_driver.h"
#include "tests/ops/case_file.h"

namespace ridge::fake_cuda {
namespace {

const cuda::LibrarySearch kFakeFolder = {{RIDGE_FAKE_CUDA_FOLDER}, {}};
constexpr char kError[] = "failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)";

// A backend whose second launch, or copy, fails when its stream comes to it.
struct SecondFails {
  explicit SecondFails(bool waits, const std::string& function = "cuLaunchKernel")
      : gpu(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"},
                     {"RIDGE_FAKE_CUDA_FAIL_LATE", function + ":2:700"}}),
        memory(Allocated(*gpu.device, 1 << 20)) {
    Result<cuda::KernelCompiler> compiler =
        cuda::KernelCompiler::Open(gpu.device->gpu(), cache.File("cubin"), kFakeFolder);
    RIDGE_CHECK(compiler.ok(), compiler.status().message());
    Result<cuda::KernelLibraries> libraries =
        cuda::OpenLibraries(*gpu.device, kFakeFolder, [](const std::string&) {});
    RIDGE_CHECK(libraries.ok(), libraries.status().message());
    backend = cuda::MakeCudaBackend(*gpu.device, *std::move(compiler), std::move(*libraries),
                                    {.waits_for_each = waits});
  }

  Status Enqueue(Kernel& kernel, size_t inputs) {
    const auto at = [&](size_t part) { return memory->data() + part * 4096; };
    std::vector<const void*> in;
    for (size_t i = 0; i < inputs; ++i) in.push_back(at(i));
    void* const out = at(inputs);
    return kernel.Enqueue(gpu.device->stream(0), {in, {&out, 1}, at(inputs + 1)});
  }

  const TempFolder cache;
  const FakeGpu gpu;
  const std::unique_ptr<Memory> memory;
  std::unique_ptr<Backend> backend;
};

using MakeKernel = std::function<Result<std::unique_ptr<Kernel>>(Backend& backend)>;

// The first run of the kernel is not blamed.  Without waiting nobody knows the node.
void ExpectNamed(const std::string& where, size_t inputs, const MakeKernel& make,
                 const std::string& function = "cuLaunchKernel") {
  for (const bool waits : {true, false}) {
    SecondFails opened(waits, function);
    const auto kernel = make(*opened.backend);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    EXPECT_TRUE(opened.Enqueue(**kernel, inputs).ok());
    const Status second = opened.Enqueue(**kernel, inputs);
    EXPECT_EQ(second.ok(), !waits);
    const Status status = waits ? second : opened.gpu.device->stream(0).Synchronize();
    EXPECT_TRUE(status.message().starts_with(waits ? where + ": cuda:0: cu" : "cuda:0: cu"))
        << status.message();
    EXPECT_NE(status.message().find(kError), std::string::npos) << status.message();
    EXPECT_EQ(status.message().find("--kernel-launch sync") == std::string::npos, waits);
    EXPECT_NE(status.message().find("hint: "), std::string::npos) << status.message();
  }
}

// The first kernel that a backend offers for "conv", "f32[1,4,3,3], f32[1,4,3,3]".
MakeKernel FirstKernel(const std::string& op_name, const std::string& text,
                       const std::string& kernel) {
  return [=](Backend& backend) -> Result<std::unique_ptr<Kernel>> {
    const OpDef& op = *FindOp(op_name);
    RIDGE_ASSIGN_OR_RETURN(const CaseFile file, ParseCaseFile("case " + text + "\n", "one.case"));
    RIDGE_ASSIGN_OR_RETURN(const OpCall call, InferCase(op, file.cases[0]));
    const KernelCandidates found =
        backend.Candidates(op, call, std::vector<LayoutId>(call.inputs.size()));
    EXPECT_TRUE(found.choices.at(0).kernel.starts_with(kernel)) << found.choices.at(0).kernel;
    return backend.Create(op, call, found.choices.at(0));
  };
}

TEST(CudaWaiting, AKernelOfOursThatFailsLateNamesItsNode) {
  ExpectNamed("relu 'y'", 1, FirstKernel("relu", "f32[8]", "cuda."));
}

TEST(CudaWaiting, AProductOfCublasLtThatFailsLateNamesItsNode) {
  ExpectNamed("matmul 'y'", 2, FirstKernel("matmul", "f32[2,3], f32[3,4]", "cublaslt."));
}

TEST(CudaWaiting, AKernelOfCudnnThatFailsLateNamesItsNode) {
  ExpectNamed("conv 'y'", 2, FirstKernel("conv", "f32[1,4,3,3], f32[1,4,3,3]", "cudnn."));
}

// A node that copies 'x' from row-major.
MakeKernel CopyTo(LayoutId layout) {
  return [=](Backend& backend) {
    StepPlan step;
    for (const LayoutId of : {kRowMajor, layout}) {
      PlannedValue value;
      value.name = "x";
      value.type = {DType::kF32, {1, 2, 3, 3}};
      value.layout = of;
      value.size_bytes = 256;
      step.values.push_back(std::move(value));
    }
    PlannedNode node = ReorderNode(backend, step.values[0], step.values[1]);
    node.inputs = {0};
    node.outputs = {1};
    return MakeStepKernel(step, node, backend);
  };
}

TEST(CudaWaiting, ACopyThatFailsLateNamesItsNode) {
  ExpectNamed("reorder 'x'", 1, CopyTo(kRowMajor), "cuMemcpyAsync");
  ExpectNamed("reorder 'x'", 1, CopyTo(cuda::kChannelsLast));
}

}  // namespace
}  // namespace ridge::fake_cuda

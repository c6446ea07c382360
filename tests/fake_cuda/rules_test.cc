// A plan for a GPU that is not here rewrites graphs as the backend does on one that is.
#include "ridge/backend/cuda/cuda_backend.h"
#include "ridge/backend/cuda/libraries.h"
#include "ridge/core/test_folder.h"
#include "ridge/plan/hardware/planned_device.h"
#include "tests/fake_cuda/test_driver.h"

namespace ridge::fake_cuda {
namespace {

const Settings kQuick = {{"RIDGE_FAKE_CUDA_DELAY_US", "0"}};
const cuda::LibrarySearch kFakes = {{RIDGE_FAKE_CUDA_FOLDER}, {}};

// With cuBLASLt and cuDNN.
std::unique_ptr<Backend> OpenBackend(const FakeGpu& gpu, const std::string& cache) {
  Result<cuda::KernelCompiler> compiler =
      cuda::KernelCompiler::Open(gpu.device->gpu(), cache, kFakes);
  EXPECT_TRUE(compiler.ok()) << compiler.status().message();
  Result<cuda::KernelLibraries> libraries =
      cuda::OpenLibraries(*gpu.device, kFakes, [](const std::string&) {});
  EXPECT_TRUE(libraries.ok()) << libraries.status().message();
  EXPECT_EQ(libraries->size(), 2u);
  return cuda::MakeCudaBackend(*gpu.device, *std::move(compiler), std::move(*libraries));
}

// "x0 x2.. y0; x1 y1": inputs and outputs of each group.
std::string TextOf(const std::vector<DTypeGroup>& groups) {
  std::string text;
  for (const DTypeGroup& group : groups) {
    for (const size_t i : group.inputs) text += " x" + std::to_string(i);
    if (group.rest) text += "..";
    for (const size_t i : group.outputs) text += " y" + std::to_string(i);
    text += ";";
  }
  return text;
}

OpCall SgdUpdate(int64_t elements) {
  const TensorType parameter{DType::kF32, {elements}}, rate{DType::kF32, {}};
  return {"sgd_update 'p'", {parameter, parameter, rate}, {parameter}, {}};
}

TEST(CudaRules, AreThoseOfAPlanForAGpuThatIsNotHere) {
  const TempFolder folder;
  const FakeGpu gpu(kQuick);
  const std::unique_ptr<Backend> backend = OpenBackend(gpu, folder.File("cubin"));
  const Result<Hardware> h200 = FindHardware("h200-sxm");
  ASSERT_TRUE(h200.ok()) << h200.status().message();
  PlannedDevice device(*h200, {.operands = DType::kBF16});
  const RewriteRules &here = backend->rules(), &planned = device.rules();

  for (const OpDef& op : AllOps()) {
    EXPECT_EQ(TextOf(here.ReducedGroups(op)), TextOf(planned.ReducedGroups(op))) << op.name;
    if (op.name.starts_with("conv_pool")) continue;  // no kernel of a GPU joins them
    EXPECT_EQ(here.GivesF32Sums(op), planned.GivesF32Sums(op)) << op.name;
  }
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
    EXPECT_EQ(here.GivesBiasGradient(dtype), planned.GivesBiasGradient(dtype));
  EXPECT_EQ(here.MultipleOfProducts().needed, planned.MultipleOfProducts().needed);
  EXPECT_EQ(here.MultipleOfProducts().padded, planned.MultipleOfProducts().padded);
  for (const int64_t elements : {768, 1 << 24})
    EXPECT_EQ(here.GroupsUpdate(SgdUpdate(elements)), planned.GroupsUpdate(SgdUpdate(elements)));
}

}  // namespace
}  // namespace ridge::fake_cuda

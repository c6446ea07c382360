// The kernels on the GPU that is there, against the reference: the first cases of each operator.
//
//   RIDGE_GPU_CASES=1000           so many of each
//   RIDGE_CUDA_TEXT_OPS=softmax    only these operators
#include <cstdlib>
#include <map>

#include "ridge/backend/cuda/cuda_backend.h"
#include "ridge/backend/cuda/libraries.h"
#include "tests/cuda_text/case_kernels.h"
#include "tests/fake_cuda/gpu/with_gpu.h"
#include "tests/ops/check_backend.h"

namespace ridge::cuda {
namespace {

constexpr double kTolerance = 2e-5;

int CasesOfEach() {
  const char* const text = std::getenv("RIDGE_GPU_CASES");
  return text == nullptr ? 4 : std::atoi(text);
}

// The kernel that the planner would take, and what libraries said before.
std::string FirstChoice(Backend& backend, const cuda_text::CaseKernel& one) {
  const std::vector<LayoutId> row_major(one.call.inputs.size(), kRowMajor);
  const KernelCandidates found = backend.Candidates(*one.op, one.call, row_major);
  std::string text = found.choices.empty() ? "none" : found.choices[0].kernel;
  for (const KernelRefusal& refusal : found.refusals)
    text += fmt::format("; {}: {}", refusal.kernel, refusal.reason);
  return text;
}

class GpuKernels : public WithGpu {};

TEST_F(GpuKernels, AgreeWithTheReference) {
  Result<KernelCompiler> compiler = KernelCompiler::Open(device_->gpu(), CubinFolder());
  ASSERT_TRUE(compiler.ok()) << compiler.status().message();
  const auto say = [](const std::string& text) { fmt::print("{}\n", text); };
  Result<KernelLibraries> libraries = OpenLibraries(*device_, SearchForToolkit(), say);
  ASSERT_TRUE(libraries.ok()) << libraries.status().message();
  const auto backend = MakeCudaBackend(*device_, *std::move(compiler), std::move(*libraries));
  std::map<std::string, int> cases, first;
  int checked = 0;
  for (const cuda_text::CaseKernel& one : cuda_text::KernelsOfCases().kernels) {
    if (++cases[one.op->name] > CasesOfEach()) continue;
    ++first[FirstChoice(*backend, one)];
    int fast = 0;
    EXPECT_EQ(CheckBackend(*backend, *one.op, one.op_case, one.layout, kTolerance, fast), "")
        << one.where;
    // After an error of CUDA's nothing runs any more.
    const Status status = device_->stream(0).Synchronize();
    ASSERT_TRUE(status.ok()) << one.where << ": " << status.message();
    ++checked;
  }
  for (const OpDef& op : AllOps())
    EXPECT_TRUE(cases.contains(op.name) || !cuda_text::IsChosen(op.name)) << op.name;
  fmt::print("{} cases of {} operators\n", checked, cases.size());
  for (const auto& [kernel, count] : first) fmt::print("{:5} {}\n", count, kernel);
}

}  // namespace
}  // namespace ridge::cuda

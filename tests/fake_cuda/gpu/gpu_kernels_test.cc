// The kernels on the GPU that is there, against the reference: the first cases of each operator
// and layout.
//
//   RIDGE_GPU_CASES=1000           so many of each
//   RIDGE_CUDA_TEXT_OPS=softmax    only these operators
#include <cstdlib>
#include <map>
#include <set>

#include "ridge/backend/cuda/cuda_backend.h"
#include "ridge/backend/cuda/libraries.h"
#include "tests/cuda_text/case_kernels.h"
#include "tests/fake_cuda/gpu/with_gpu.h"
#include "tests/ops/check_backend.h"

namespace ridge::cuda {
namespace {

constexpr double kTolerance = 2e-5;
// Operators that run, some fewer than tests/ops has: a check of few is none.
constexpr size_t kLeastOperators = 140, kLeastChannelsLast = 35;

int CasesOfEach() {
  const char* const text = std::getenv("RIDGE_GPU_CASES");
  return text == nullptr ? 2 : std::atoi(text);
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

// Whether the case's kernel is among those that CheckBackend checks.
bool IsOffered(Backend& backend, const cuda_text::CaseKernel& one) {
  const std::vector<LayoutId> layouts = AvailableLayouts(one.call, one.layout);
  for (const KernelChoice& choice : backend.Candidates(*one.op, one.call, layouts).choices) {
    const LayoutId layout = IsChannelsLast(one.call, choice) ? kChannelsLast : kRowMajor;
    if (choice.kernel == one.kernel && layout == one.layout) return true;
  }
  return false;
}

class GpuKernels : public WithGpu {};

TEST_F(GpuKernels, AgreeWithTheReference) {
  Result<KernelCompiler> compiler = KernelCompiler::Open(device_->gpu(), CubinFolder());
  ASSERT_TRUE(compiler.ok()) << compiler.status().message();
  const auto say = [](const std::string& text) { fmt::print("{}\n", text); };
  Result<KernelLibraries> libraries = OpenLibraries(*device_, SearchForToolkit(), say);
  ASSERT_TRUE(libraries.ok()) << libraries.status().message();
  const auto backend = MakeCudaBackend(*device_, *std::move(compiler), std::move(*libraries));
  ASSERT_GE(CasesOfEach(), 1) << "RIDGE_GPU_CASES";
  std::map<std::tuple<std::string, LayoutId, bool>, int> cases;
  std::map<LayoutId, std::set<std::string>> launched;  // operators
  std::map<std::string, int> first;
  int checked = 0;
  for (const cuda_text::CaseKernel& one : cuda_text::KernelsOfCases().kernels) {
    const bool launches = !one.text.launches.empty();
    if (++cases[{one.op->name, one.layout, launches}] > CasesOfEach()) continue;
    ++first[FirstChoice(*backend, one)];
    int fast = 0;
    EXPECT_EQ(CheckBackend(*backend, *one.op, one.op_case, one.layout, kTolerance, fast), "")
        << one.where;
    // After an error of CUDA's nothing runs any more.
    const Status status = device_->stream(0).Synchronize();
    ASSERT_TRUE(status.ok()) << one.where << ": " << status.message();
    ++checked;
    if (launches && IsOffered(*backend, one)) launched[one.layout].insert(one.op->name);
  }
  for (const OpDef& op : AllOps())
    EXPECT_TRUE(launched[kRowMajor].contains(op.name) || !cuda_text::IsChosen(op.name)) << op.name;
  const size_t operators = launched[kRowMajor].size(), last = launched[kChannelsLast].size();
  if (std::getenv("RIDGE_CUDA_TEXT_OPS") == nullptr) {
    EXPECT_GE(operators, kLeastOperators);
    EXPECT_GE(last, kLeastChannelsLast);
  }
  fmt::print("{} cases of {} operators, {} in channels-last, too\n", checked, operators, last);
  for (const auto& [kernel, count] : first) fmt::print("{:5} {}\n", count, kernel);
}

}  // namespace
}  // namespace ridge::cuda

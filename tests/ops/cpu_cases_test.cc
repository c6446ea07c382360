// The CPU backend's kernels against the reference, over every case file.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/core/threads.h"
#include "tests/ops/case_file.h"
#include "tests/ops/check_backend.h"

namespace ridge {
namespace {

std::string Stem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

// Two threads also where there is one core: results depend on the number of parts.
Backend& Cpu() {
  static Backend* backend = MakeCpuBackend(std::min(2, AvailableThreads()))->release();
  return *backend;
}

// The layout that convolutions like here, by asking one; 0 where they like row-major.
LayoutId BlockedLayout() {
  OpCall call;
  call.where = "probe";
  call.inputs = {{DType::kF32, {2, 32, 8, 8}}, {DType::kF32, {32, 32, 3, 3}}};
  const OpDef& conv = *FindOp("conv");
  call.outputs = *InferCall(conv, call);
  const std::vector<LayoutId> available(2, kRowMajor);
  return Cpu().Candidates(conv, call, available).choices.at(0).output_layouts.at(0);
}

// f32 against double, rounded once: kernels add in f32, so the error grows with the length of sums.
constexpr double kTolerance = 1e-5;
// batch_norm: the mean is rounded to f32, which at a mean of 100 and a deviation of 0.3 is worth
// 2e-5 of y.
double ToleranceOf(const OpDef& op) { return op.name == "batch_norm" ? 1e-4 : kTolerance; }

class CpuCases : public testing::TestWithParam<std::string> {};

TEST_P(CpuCases, AgreeWithTheReference) {
  const Result<CaseFile> file = ReadCaseFile(GetParam());
  ASSERT_TRUE(file.ok()) << file.status().message();
  const OpDef* op = FindOp(file->op);
  ASSERT_NE(op, nullptr);
  int fast = 0;
  for (const OpCase& op_case : file->cases) {
    if (op_case.kind == OpCase::Kind::kError) continue;
    for (const LayoutId layout : {kRowMajor, BlockedLayout()}) {
      const std::string wrong = CheckBackend(Cpu(), *op, op_case, layout, ToleranceOf(*op), fast);
      if (!wrong.empty()) {
        ADD_FAILURE() << fmt::format("{}:{}: {}\n  {}", file->path, op_case.line, op_case.text,
                                     wrong);
      }
    }
  }
  RecordProperty("fast_kernels", fast);
}

INSTANTIATE_TEST_SUITE_P(Ops, CpuCases, testing::ValuesIn(AllCaseFiles()),
                         [](const auto& info) { return Stem(info.param); });

}  // namespace
}  // namespace ridge

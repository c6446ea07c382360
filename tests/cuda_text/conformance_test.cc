// Every case of every operator whose kernel we write as CUDA text, on the host: against the
// reference, in both orders of threads, with no byte beside an operand touched.
//
//   RIDGE_CUDA_TEXT_OPS=softmax,matmul    only these
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/backend/reference/reference_backend.h"
#include "tests/cuda_text/text_backend.h"
#include "tests/ops/case_file.h"
#include "tests/ops/check_backend.h"

namespace ridge::cuda_text {
namespace {

constexpr double kTolerance = 2e-5;

struct Case {
  const OpDef* op;
  OpCase op_case;
  std::string where;
};

std::set<std::string> ChosenOps() {
  std::set<std::string> ops;
  const char* text = std::getenv("RIDGE_CUDA_TEXT_OPS");
  std::stringstream list(text == nullptr ? "" : text);
  for (std::string op; std::getline(list, op, ',');) ops.insert(op);
  return ops;
}

// Cases with a kernel; the others are counted by "operator: reason".
std::vector<Case> CasesWithKernels(std::vector<std::string>& sources,
                                   std::map<std::string, int>& without) {
  std::vector<Case> cases;
  const std::set<std::string> chosen = ChosenOps();
  for (const std::string& path : AllCaseFiles()) {
    const Result<CaseFile> file = ReadCaseFile(path);
    EXPECT_TRUE(file.ok()) << file.status().message();
    if (!chosen.empty() && !chosen.contains(file->op)) continue;
    const OpDef* op = FindOp(file->op);
    for (const OpCase& op_case : file->cases) {
      if (op_case.kind == OpCase::Kind::kError) continue;
      const Result<OpCall> call = InferCase(*op, op_case);
      EXPECT_TRUE(call.ok()) << call.status().message();
      const Result<cuda::WrittenKernel> written = cuda::WriteKernel(*op, *call);
      if (!written.ok()) {
        ++without[file->op + ": " + written.status().message()];
        continue;
      }
      sources.push_back(written->text.source);
      const std::string name = std::filesystem::path(path).filename().string();
      cases.push_back({op, op_case, name + ":" + std::to_string(op_case.line)});
    }
  }
  return cases;
}

TEST(CudaText, EveryCaseAgreesWithTheReference) {
  std::vector<std::string> sources;
  std::map<std::string, int> without;
  const std::vector<Case> cases = CasesWithKernels(sources, without);
  const auto program = TextProgram::Compile(sources);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  const std::unique_ptr<Backend> backend = MakeTextBackend(*reference, **program);
  for (const Case& one : cases) {
    int fast = 0;
    EXPECT_EQ(CheckBackend(*backend, *one.op, one.op_case, kRowMajor, kTolerance, fast), "")
        << one.where;
  }
  for (const auto& [what, count] : without)
    std::printf("no kernel: %s (%d)\n", what.c_str(), count);
  std::printf("%zu cases\n", cases.size());
}

}  // namespace
}  // namespace ridge::cuda_text

#include "tests/cuda_text/case_kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

namespace ridge::cuda_text {
namespace {

std::set<std::string> ChosenOps() {
  std::set<std::string> ops;
  const char* text = std::getenv("RIDGE_CUDA_TEXT_OPS");
  std::stringstream list(text == nullptr ? "" : text);
  for (std::string op; std::getline(list, op, ',');) ops.insert(op);
  return ops;
}

void AddCase(const CaseFile& file, const OpCase& op_case, CaseKernels& found) {
  const OpDef* op = FindOp(file.op);
  const Result<OpCall> call = InferCase(*op, op_case);
  ASSERT_TRUE(call.ok()) << call.status().message();
  Result<cuda::WrittenKernel> written = cuda::WriteKernel(*op, *call);
  if (!written.ok()) {
    ++found.without[file.op + ": " + written.status().message()];
    return;
  }
  const std::string name = std::filesystem::path(file.path).filename().string();
  found.kernels.push_back(
      {op, op_case, *call, std::move(written->text), name + ":" + std::to_string(op_case.line)});
}

}  // namespace

CaseKernels KernelsOfCases() {
  CaseKernels found;
  const std::set<std::string> chosen = ChosenOps();
  for (const std::string& path : AllCaseFiles()) {
    const Result<CaseFile> file = ReadCaseFile(path);
    EXPECT_TRUE(file.ok()) << file.status().message();
    if (!file.ok() || (!chosen.empty() && !chosen.contains(file->op))) continue;
    for (const OpCase& op_case : file->cases) {
      if (op_case.kind != OpCase::Kind::kError) AddCase(*file, op_case, found);
    }
  }
  return found;
}

}  // namespace ridge::cuda_text

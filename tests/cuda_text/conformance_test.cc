// Every case of every operator whose kernel we write as CUDA text, on the host: against the
// reference, in both orders of threads, with no byte beside an operand touched.
#include <gtest/gtest.h>

#include "ridge/backend/reference/reference_backend.h"
#include "tests/cuda_text/case_kernels.h"
#include "tests/cuda_text/text_backend.h"
#include "tests/ops/check_backend.h"

namespace ridge::cuda_text {
namespace {

constexpr double kTolerance = 2e-5;

TEST(CudaText, EveryCaseAgreesWithTheReference) {
  const CaseKernels found = KernelsOfCases();
  std::vector<std::string> sources;
  for (const CaseKernel& kernel : found.kernels) {
    for (std::string& source : kernel.Sources()) sources.push_back(std::move(source));
  }
  const auto program = TextProgram::Compile(sources);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  const std::unique_ptr<Backend> backend = MakeTextBackend(*reference, **program);
  for (const CaseKernel& one : found.kernels) {
    int fast = 0;
    EXPECT_EQ(CheckBackend(*backend, *one.op, one.op_case, one.layout, kTolerance, fast), "")
        << one.where;
  }
  std::printf("%zu cases\n", found.kernels.size());
}

// Texts have no i4.
TEST(CudaText, EveryCaseButTheseHasAKernel) {
  std::map<std::string, int> without;
  for (const char* op : {"bitwise_and", "bitwise_or", "bitwise_xor"}) {
    if (IsChosen(op)) without[std::string(op) + ": dtype"] = 1;
  }
  EXPECT_EQ(KernelsOfCases().without, without);
}

}  // namespace
}  // namespace ridge::cuda_text

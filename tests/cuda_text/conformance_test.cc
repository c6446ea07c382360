// Every case of every operator whose kernel we write as CUDA text, on the host: against the
// reference, in both orders of blocks and threads, with no byte beside an operand touched.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/reference/reference_backend.h"
#include "tests/cuda_text/case_kernels.h"
#include "tests/cuda_text/text_backend.h"
#include "tests/ops/check_backend.h"

namespace ridge::cuda_text {
namespace {

constexpr double kTolerance = 2e-5;

void ExpectAgreement(const std::vector<CaseKernel>& kernels) {
  std::vector<std::string> sources;
  for (const CaseKernel& kernel : kernels) {
    for (std::string& source : kernel.Sources()) sources.push_back(std::move(source));
  }
  const auto program = TextProgram::Compile(sources);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  const std::unique_ptr<Backend> backend = MakeTextBackend(*reference, **program);
  for (const CaseKernel& one : kernels) {
    int fast = 0;
    EXPECT_EQ(CheckBackend(*backend, *one.op, one.op_case, one.layout, kTolerance, fast), "")
        << one.where;
  }
  std::printf("%zu cases\n", kernels.size());
}

TEST(CudaText, EveryCaseAgreesWithTheReference) { ExpectAgreement(KernelsOfCases().kernels); }

TEST(CudaText, IndicesOf64BitsAgreeWithTheReference) {
  const std::vector<CaseKernel> kernels = WideKernels();
  const cuda::WideIndicesFrom wide_from(0);
  ExpectAgreement(kernels);
}

// Their texts count elements by i64 whatever the call; an int counts a row, and larger ones are
// refused.
const std::set<std::string> kCountByI64 = {"cuda.assign_boxes",
                                           "cuda.batch_norm_combine",
                                           "cuda.cast_small",
                                           "cuda.cumprod_grad",
                                           "cuda.dequantize_nf4",
                                           "cuda.determinant",
                                           "cuda.index",
                                           "cuda.points",
                                           "cuda.roi",
                                           "cuda.roi_align_grad",
                                           "cuda.scan",
                                           "cuda.softmax",
                                           "cuda.top_k"};

TEST(CudaText, EveryKernelButTheseHasATextWithIndicesOf64Bits) {
  if (std::getenv("RIDGE_CUDA_TEXT_OPS") != nullptr) GTEST_SKIP() << "of some operators";
  std::set<std::string> without;
  for (const cuda::TextKernelDef& def : cuda::AllTextKernels()) without.insert(def.name);
  for (const CaseKernel& one : WideKernels()) without.erase(one.kernel);
  EXPECT_EQ(without, kCountByI64);
}

std::string NameOf(const std::string& kernel, LayoutId layout) {
  return kernel + " " + cuda::LayoutNameOf(layout);
}

TEST(CudaText, EveryKernelIsThatOfACase) {
  if (std::getenv("RIDGE_CUDA_TEXT_OPS") != nullptr) GTEST_SKIP() << "of some operators";
  std::set<std::string> written, reached;
  for (const cuda::TextKernelDef& def : cuda::AllTextKernels()) {
    if (def.write != nullptr) written.insert(NameOf(def.name, kRowMajor));
    if (def.write_channels_last != nullptr) written.insert(NameOf(def.name, cuda::kChannelsLast));
  }
  for (const CaseKernel& one : KernelsOfCases().kernels) {
    if (!one.text.launches.empty()) reached.insert(NameOf(one.kernel, one.layout));
  }
  EXPECT_EQ(reached, written);
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

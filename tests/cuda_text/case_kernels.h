// The kernels' texts of the cases of tests/ops.
//
//   RIDGE_CUDA_TEXT_OPS=softmax,matmul    only these operators
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/backend/cuda/text_kernel_def.h"
#include "tests/ops/case_file.h"

namespace ridge::cuda_text {

struct CaseKernel {
  const OpDef* op;
  OpCase op_case;
  OpCall call;
  LayoutId layout;     // of the operands that have layouts
  std::string kernel;  // KernelChoice::kernel
  cuda::KernelText text;
  std::string where;  // "softmax.case:7", "add.case:3 channels_last"

  // The text's; in channels-last those of the call in row-major and of the reorders of operands,
  // too.
  std::vector<std::string> Sources() const;
};

struct CaseKernels {
  std::vector<CaseKernel> kernels;
  std::map<std::string, int> without;  // "cast: dtype": cases that have none
};

// Whether RIDGE_CUDA_TEXT_OPS leaves the operator.
bool IsChosen(const std::string& op);
CaseKernels KernelsOfCases();
// Those whose text differs with indices of 64 bits, which theirs has: of each operator and layout
// the first of some forms of text.
std::vector<CaseKernel> WideKernels();

}  // namespace ridge::cuda_text

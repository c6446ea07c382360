#include "ridge/backend/cuda/written_workspace.h"

#include <algorithm>

#include "ridge/backend/cuda/cudnn/cudnn_call.h"
#include "ridge/backend/cuda/text_kernel_def.h"

namespace ridge::cuda {
namespace {

bool IsOfLibrary(const OpDef& op, const OpCall& call, int64_t library_bytes) {
  if (op.name == "matmul" || op.cost_class == CostClass::kConv) return true;
  if (!op.name.starts_with("attention")) return false;
  CudnnCall asked;
  return DescribeAttention(op, call, asked) == nullptr &&
         library_bytes <= asked.question.most_workspace;
}

}  // namespace

std::optional<int64_t> WrittenWorkspace(const OpDef& op, const OpCall& call,
                                        int64_t library_bytes) {
  if (IsOfLibrary(op, call, library_bytes)) return std::nullopt;
  std::optional<int64_t> most;
  for (const LayoutId layout : {kRowMajor, kChannelsLast}) {
    const Result<WrittenKernel> written = WriteKernel(op, call, layout);
    if (written.ok()) most = std::max(most.value_or(0), written->text.workspace_bytes);
  }
  return most;
}

}  // namespace ridge::cuda

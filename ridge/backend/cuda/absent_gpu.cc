#include "ridge/backend/cuda/absent_gpu.h"

#include <algorithm>
#include <iterator>

#include "ridge/backend/cuda/cublaslt/product.h"
#include "ridge/backend/cuda/cudnn/cudnn_call.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/graph/ops/shared/attention.h"

namespace ridge::cuda {
namespace {

bool IsProduct(const OpCall& call) {
  Product asked;
  return DescribeProduct(call, /*tf32=*/false, asked) == nullptr;
}

// In one layout as in the other.  cuDNN 9.19 has no engine for addresses below its alignment, and
// none for a relu without a bias.
bool IsConvOfCudnn(const OpDef& op, const OpCall& call) {
  CudnnCall asked;
  if (DescribeConv(op, call, kRowMajor, asked) != nullptr) return false;
  const RidgeCudnnQuestion& question = asked.question;
  const auto is_aligned = [](const RidgeCudnnTensor& tensor) {
    return tensor.rank == 0 || tensor.alignment >= kCudnnAlignment;
  };
  const bool relu_alone = question.relu != 0 && question.tensors[RIDGE_CUDNN_BIAS].rank == 0;
  return !relu_alone &&
         std::all_of(std::begin(question.tensors), std::end(question.tensors), is_aligned);
}

bool IsAttentionOfCudnn(const OpDef& op, const OpCall& call, int64_t library_bytes) {
  CudnnCall asked;
  return DescribeAttention(op, call, asked) == nullptr &&
         library_bytes <= asked.question.most_workspace;
}

bool IsOfLibrary(const OpDef& op, const OpCall& call, int64_t library_bytes) {
  if (op.name == "matmul") return IsProduct(call);
  if (IsConv(op)) return IsConvOfCudnn(op, call);
  return IsAttention(op) && IsAttentionOfCudnn(op, call, library_bytes);
}

class AbsentGpuKernels : public AbsentKernels {
 public:
  std::optional<WorkspaceBytes> Workspace(const OpDef& op, const OpCall& call,
                                          int64_t library_bytes) const override {
    if (IsOfLibrary(op, call, library_bytes)) return std::nullopt;
    std::optional<WorkspaceBytes> most;
    for (const LayoutId layout : {kRowMajor, kChannelsLast}) {
      const Result<WrittenKernel> written = WriteKernel(op, call, layout);
      if (!written.ok()) continue;
      const int64_t bytes = written->text.workspace_bytes;
      const bool differs = most && most->bytes != bytes;
      most = {std::max(most ? most->bytes : 0, bytes), differs};
    }
    return most;
  }

  bool Fuses(const OpDef& op, const OpCall& call) const override {
    if (!JoinsSteps(op)) return false;
    if (op.name == "matmul") return IsProduct(call);
    if (op.name == "conv") return IsConvOfCudnn(op, call);
    return WriteKernel(op, call).ok();
  }
};

}  // namespace

bool JoinsSteps(const OpDef& op) {
  return op.name == "matmul" || op.name == "conv" || op.name == "batch_norm" ||
         op.name == "batch_norm_grad" || op.name == "scatter" || op.name == "softmax_cross_entropy";
}

const AbsentKernels& KernelsOfAbsentGpus() {
  static const AbsentGpuKernels kernels;
  return kernels;
}

}  // namespace ridge::cuda

// attention and attention_grad as cuDNN's SDPA: operands are views of what they lie in.
#include "ridge/backend/cuda/cudnn/cudnn_call.h"
#include "ridge/graph/ops/shared/attention.h"

namespace ridge::cuda {
namespace {

using Of = CudnnOperand::Of;

// A gradient with the same bits in each run takes 2 * batch * heads * queries * keys bytes.
constexpr int64_t kMostAttentionBytes = int64_t{4} << 30;

class AttentionDescriber {
 public:
  AttentionDescriber(const OpCall& call, bool is_grad, CudnnCall& asked)
      : call_(call), e_(ExtentsOf(call)), views_(ViewsOf(call)), is_grad_(is_grad), asked_(asked) {}

  void Describe() {
    const size_t y = is_grad_ ? 3 : 0;
    AddRows(RIDGE_CUDNN_Q, views_.q, Queries(), Of::kInput, 0);
    AddRows(RIDGE_CUDNN_K, views_.k, Keys(e_.head_dim), Of::kInput, views_.k_operand);
    AddRows(RIDGE_CUDNN_V, views_.v, Keys(e_.value_dim), Of::kInput, views_.v_operand);
    AddRows(RIDGE_CUDNN_O, views_.y, Results(), is_grad_ ? Of::kInput : Of::kOutput, y);
    AddLogSum(is_grad_ ? Of::kInput : Of::kOutput, y + 1);
    if (!is_grad_) return;
    AddRows(RIDGE_CUDNN_DO, views_.y, Results(), Of::kInput, 5);
    AddRows(RIDGE_CUDNN_DQ, views_.q, Queries(), Of::kOutput, 0);
    AddRows(RIDGE_CUDNN_DK, views_.k, Keys(e_.head_dim), Of::kOutput, views_.k_operand);
    AddRows(RIDGE_CUDNN_DV, views_.v, Keys(e_.value_dim), Of::kOutput, views_.v_operand);
  }

 private:
  Dims Queries() const { return {e_.batch, e_.heads, e_.queries, e_.head_dim}; }
  Dims Keys(int64_t width) const { return {e_.batch, e_.kv_heads, e_.keys, width}; }
  Dims Results() const { return {e_.batch, e_.heads, e_.queries, e_.value_dim}; }

  void AddRows(int slot, const AttentionView& view, const Dims& dims, Of of, size_t index) {
    const DType dtype = call_.inputs[0].dtype;
    asked_.question.tensors[slot] =
        CudnnTensorOf(*CudnnTypeOf(dtype), dims, {view.batch, view.head, view.row, 1});
    asked_.operands[static_cast<size_t>(slot)] = {of, index, view.base * BytesPerElement(dtype)};
  }
  void AddLogSum(Of of, size_t index) {
    asked_.question.tensors[RIDGE_CUDNN_LOG_SUM] =
        CudnnTensorOf(RIDGE_CUDNN_F32, {e_.batch, e_.heads, e_.queries, 1},
                      {e_.heads * e_.queries, e_.queries, 1, 1});
    asked_.operands[RIDGE_CUDNN_LOG_SUM] = {of, index, 0};
  }

  const OpCall& call_;
  const AttentionExtents e_;
  const AttentionViews views_;
  const bool is_grad_;
  CudnnCall& asked_;
};

// RidgeCudnnQuestion::causal; none where some query sees no key, or it has no such band.
std::optional<int32_t> CausalOf(const OpCall& call) {
  if (call.integer("causal") == 0) return 0;
  const AttentionExtents e = ExtentsOf(call);
  const int64_t offset = call.integer("causal_offset");
  if (offset == 0) return 1;
  return offset == e.keys - e.queries && offset > 0 ? std::optional(2) : std::nullopt;
}

}  // namespace

const char* DescribeAttention(const OpDef& op, const OpCall& call, CudnnCall& asked) {
  constexpr size_t kMask = 3, kMaskOfGrad = 6, kDLogSumExp = 7;
  const bool is_grad = op.name == "attention_grad";
  const DType dtype = call.inputs[0].dtype;
  if (dtype != DType::kF16 && dtype != DType::kBF16) return refusal::kCudnnDType;
  if (AnyEmpty(call)) return refusal::kCudnnEmpty;
  if (call.has_input(is_grad ? kMaskOfGrad : kMask)) return refusal::kCudnnMask;
  const AttentionExtents e = ExtentsOf(call);
  if (e.head_dim % 8 != 0 || e.value_dim % 8 != 0) return refusal::kCudnnWidth;
  const std::optional<int32_t> causal = CausalOf(call);
  if (!causal || call.number("softcap") != 0) return refusal::kCudnnAttribute;
  if (is_grad && call.has_input(kDLogSumExp)) return refusal::kCudnnAttribute;
  asked.question.op = is_grad ? RIDGE_CUDNN_ATTENTION_GRAD : RIDGE_CUDNN_ATTENTION;
  asked.question.scale = call.number("scale");
  asked.question.causal = *causal;
  asked.question.most_workspace = kMostAttentionBytes;
  AttentionDescriber(call, is_grad, asked).Describe();
  return nullptr;
}

}  // namespace ridge::cuda

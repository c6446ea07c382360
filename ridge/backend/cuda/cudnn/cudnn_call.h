// A call of an operator as a question to cuDNN, and where the question's tensors are.
#pragma once
#include <array>

#include "ridge/backend/cuda/cudnn/cudnn_abi.h"
#include "ridge/graph/op_def.h"
#include "ridge/lower/kernel_query.h"

namespace ridge::cuda {

struct CudnnOperand {
  enum class Of : uint8_t { kNothing, kInput, kOutput };
  Of of = Of::kNothing;
  size_t index = 0;
  int64_t offset_bytes = 0;
};

struct CudnnCall {
  RidgeCudnnQuestion question{};
  std::array<CudnnOperand, RIDGE_CUDNN_SLOTS> operands{};
};

// What libraries are not asked.
namespace refusal {
inline constexpr const char* kCudnnDType = "cuDNN: dtype";
inline constexpr const char* kCudnnMask = "cuDNN: mask";  // rows that see nothing are others there
inline constexpr const char* kCudnnAttribute = "cuDNN: attribute value";
inline constexpr const char* kCudnnWidth = "cuDNN: head width";  // a multiple of 8
inline constexpr const char* kCudnnEpilogue = "cuDNN: epilogue";
inline constexpr const char* kCudnnBias = "cuDNN: bias gradient";
inline constexpr const char* kCudnnEmpty = "cuDNN: empty tensor";
}  // namespace refusal

// Operators that cuDNN has.
bool IsConv(const OpDef& op);

// These fill `asked`, or return one of refusal::*.
// attention, attention_grad.
const char* DescribeAttention(const OpDef& op, const OpCall& call, CudnnCall& asked);
// conv, conv_grad_input, conv_grad_weight, with operands in `layout`: kRowMajor, kChannelsLast.
const char* DescribeConv(const OpDef& op, const OpCall& call, LayoutId layout, CudnnCall& asked);

// For both: a tensor of a question.
std::optional<RidgeCudnnType> CudnnTypeOf(DType dtype);
inline constexpr int32_t kCudnnAlignment = 16;  // of addresses; it has no engines for less
RidgeCudnnTensor CudnnTensorOf(RidgeCudnnType type, const Dims& dims, const Dims& strides);
bool AnyEmpty(const OpCall& call);

}  // namespace ridge::cuda

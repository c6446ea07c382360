#include "ridge/backend/cuda/cudnn/cudnn_call.h"

#include <algorithm>

namespace ridge::cuda {

std::optional<RidgeCudnnType> CudnnTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return RIDGE_CUDNN_F32;
    case DType::kF16:
      return RIDGE_CUDNN_F16;
    case DType::kBF16:
      return RIDGE_CUDNN_BF16;
    default:
      return std::nullopt;
  }
}

RidgeCudnnTensor CudnnTensorOf(RidgeCudnnType type, const Dims& dims, const Dims& strides) {
  RIDGE_CHECK(dims.size() <= RIDGE_CUDNN_MOST_DIMS && dims.size() == strides.size(),
              "cuDNN's tensors have at most 5 dimensions");
  RidgeCudnnTensor tensor{};
  tensor.rank = static_cast<int32_t>(dims.size());
  tensor.type = type;
  tensor.alignment = kCudnnAlignment;
  std::copy(dims.begin(), dims.end(), tensor.dims);
  std::copy(strides.begin(), strides.end(), tensor.strides);
  return tensor;
}

bool AnyEmpty(const OpCall& call) {
  const auto empty = [](const TensorType& type) { return type.elements() == 0; };
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.has_input(i) && empty(call.inputs[i])) return true;
  }
  return std::any_of(call.outputs.begin(), call.outputs.end(), empty);
}

}  // namespace ridge::cuda

// The same model with f64 in the place of f32.
#pragma once
#include "ridge/core/tensor.h"

namespace onnx {
class ModelProto;
}

namespace ridge {

// Types of inputs, outputs, initializers and attributes, and the targets of casts.
Status ModelToF64(onnx::ModelProto& model);
Tensor TensorToF64(const Tensor& tensor);  // f32 becomes f64; others are kept

}  // namespace ridge

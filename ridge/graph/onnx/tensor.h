// TensorProto <-> Tensor.
#pragma once
#include <optional>
#include <string>

#include "ridge/core/tensor.h"

namespace onnx {
class TensorProto;
class SparseTensorProto;
}  // namespace onnx

namespace ridge {

// Our element type for a TensorProto.DataType; none for strings and complex numbers.
std::optional<DType> DTypeFromOnnx(int data_type);
int OnnxFromDType(DType dtype);
const char* OnnxTypeName(int data_type);  // "FLOAT", for messages

// Takes the bytes out of `proto` (its raw_data is empty afterwards).  External data is mapped from
// `folder`; an empty folder refuses it.  4-bit and 2-bit numbers are unpacked, one to a byte.
// Fails with kInvalidModel ("tensor 'w': holds 12 bytes; FLOAT[2,3] needs 24"), kUnsupported for
// element types that we do not hold.
Result<Tensor> TakeTensor(onnx::TensorProto& proto, const std::string& folder);
// The same without changing the message: bytes are copied.
Result<Tensor> CopyTensor(const onnx::TensorProto& proto, const std::string& folder);
// As a dense tensor of at most 2^26 elements.
Result<Tensor> DenseTensor(const onnx::SparseTensorProto& proto);

// With raw_data, little-endian.
void StoreTensor(const Tensor& tensor, const std::string& name, onnx::TensorProto& proto);

}  // namespace ridge

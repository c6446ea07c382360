// TensorProto <-> Tensor.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ridge/core/tensor.h"
#include "ridge/onnx/file/external_data.h"

namespace onnx {
class TensorProto;
class SparseTensorProto;
}  // namespace onnx

namespace ridge {

// Our element type for a TensorProto.DataType; none for strings and complex numbers.
std::optional<DType> DTypeFromOnnx(int data_type);
int OnnxFromDType(DType dtype);
const char* OnnxTypeName(int data_type);  // "FLOAT", for messages

// Takes the bytes out of `proto` (its data fields are empty afterwards).  Large external tensors
// stay in their file.  4-bit and 2-bit numbers are unpacked, one to a byte.
// Fails with kInvalidModel ("tensor 'w': holds 12 bytes; FLOAT[2,3] needs 24"), kUnsupported for
// element types that we do not hold.
Result<Tensor> TakeTensor(onnx::TensorProto& proto, ExternalFiles& files);
// A tensor whose `bytes` stored bytes lie outside of the message; `read` puts them to an address.
Result<Tensor> ReadTensor(const onnx::TensorProto& proto, int64_t bytes,
                          const std::function<Status(void* to)>& read);
// A tensor whose `bytes` stored bytes lie in `file` from `offset` on, and stay there when it is
// large and they are its numbers as they are.
Result<Tensor> TensorOfFile(const onnx::TensorProto& proto,
                            const std::shared_ptr<const TensorFile>& file, int64_t offset,
                            int64_t bytes);
// As TakeTensor without changing the message, in memory.
Result<Tensor> CopyTensor(const onnx::TensorProto& proto, ExternalFiles& files);
// The same; an empty folder refuses external data.
Result<Tensor> CopyTensor(const onnx::TensorProto& proto, const std::string& folder);
// As a dense tensor of at most `max_bytes` bytes.
Result<Tensor> DenseTensor(const onnx::SparseTensorProto& proto,
                           int64_t max_bytes = int64_t{128} << 20);

// With raw_data, little-endian; 4-bit and 2-bit numbers are packed.
void StoreTensor(const Tensor& tensor, const std::string& name, onnx::TensorProto& proto);

}  // namespace ridge

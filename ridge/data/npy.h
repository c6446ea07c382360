// The .npy format of numpy: a magic string, a Python dictionary as text, then the elements.
#pragma once
#include <string>
#include <string_view>

#include "ridge/core/tensor.h"
#include "ridge/data/byte_stream.h"

namespace ridge {

// Versions 1 to 3; little-endian f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1 in C order.
// `bytes` is how many the stream holds by its archive's account; they are checked against the shape
// before anything is allocated.  Fails with kInvalidData.
Result<Tensor> ReadNpy(ByteStream& stream, int64_t bytes);

// The header at the front of an array.
struct NpyStart {
  TensorType type;
  int64_t header_bytes = 0;
};
// `start` is the array, or at least its first 2^16 + 12 bytes.  Fails with kInvalidData, naming
// `where`.
Result<NpyStart> ReadNpyStart(const std::string& where, std::string_view start);

// What precedes the elements of `type`; bf16 has no name in numpy.
// REQUIRES: type.dtype is not bf16.
std::string NpyHeader(const TensorType& type);

}  // namespace ridge

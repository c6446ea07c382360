// ParseModelMessage: the bytes of a ModelProto -> the message, without the large tensors in it.
//
// protobuf copies every byte string, and one of more than 50 MB into a buffer that it doubles again
// and again.  So this reads the outer three levels of the message (model, graph, initializer)
// itself, leaves the numbers of large initializers where they are, and lets protobuf read
// everything else.
#pragma once
#include <cstdint>
#include <map>
#include <string_view>

#include "ridge/core/tensor_file.h"

namespace onnx {
class ModelProto;
}  // namespace onnx

namespace ridge {

// Where the numbers of an initializer lie, little-endian, as in raw_data.
struct SkippedTensor {
  int64_t offset = 0;  // into the message
  int64_t bytes = 0;
};

inline constexpr int64_t kLeftOutFrom = kStaysInFileFrom;

// `left_out` is by index of the initializer in graph.initializer(): those with one raw_data, or one
// packed float_data or double_data, of at least kLeftOutFrom bytes; the message has that field
// empty. False when `bytes` is no ModelProto; what the message holds then means nothing.
bool ParseModelMessage(std::string_view bytes, onnx::ModelProto& model,
                       std::map<int, SkippedTensor>& left_out);

}  // namespace ridge

// The rules of ONNX that hold for a whole model, checked once when it is read.  Inner header of
// model.cc.
#pragma once
#include <string>

#include "ridge/core/status.h"

namespace onnx {
class ModelProto;
}

namespace ridge {

inline constexpr int64_t kOldestOnnxIr = 3;
inline constexpr int64_t kNewestOnnxIr = 14;
// 6 is read because old exports of PyTorch have it; what ONNX promises begins with 7.
inline constexpr int64_t kOldestOnnxOpset = 6;
inline constexpr int64_t kNewestOnnxOpset = 28;

// IR version, operator sets, the graph and its names.
Status CheckOnnxModel(const onnx::ModelProto& model);
// Refuses functions that call themselves, over others too, and chains of calls deeper than 64.
Status CheckOnnxFunctions(const onnx::ModelProto& model);

// The same error, fit to be printed: names in a file have any length, and any bytes.  The middle of
// a very long text is left out, and what a terminal would obey becomes '?'.
Status PrintableOnnxStatus(const Status& status);
std::string PrintableOnnxText(std::string text);

}  // namespace ridge

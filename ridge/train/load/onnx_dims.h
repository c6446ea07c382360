// BindOnnxDims: extents for the open dimensions of an ONNX file.
#pragma once
#include <map>
#include <string>

#include "ridge/onnx/file/model.h"
#include "ridge/train/load/model_source.h"

namespace ridge {

// See LoadOnnx.
Result<std::map<std::string, int64_t>> BindOnnxDims(const OnnxModel& model,
                                                    const ModelRequest& request);

}  // namespace ridge

// Converters of the image family that have files of their own.
#pragma once
#include "ridge/onnx/import/converter.h"

namespace ridge {

Status ConvertResize(OnnxNode& n);             // image_resize.cc
Status ConvertUpsample(OnnxNode& n);           // image_resize.cc
Result<Value> ConvertAffineGrid(OnnxNode& n);  // image_grid.cc
Result<Value> ConvertGridSample(OnnxNode& n);  // image_grid.cc
Result<Value> ConvertMaxRoiPool(OnnxNode& n);  // image_roi.cc
Result<Value> ConvertRoiAlign(OnnxNode& n);    // image_roi.cc

}  // namespace ridge

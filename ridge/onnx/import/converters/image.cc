// ONNX converters: resize, sampling, regions of interest.
#include "ridge/onnx/import/converters/image.h"

namespace ridge {
namespace {

constexpr OnnxConverter kTable[] = {
    {"", "AffineGrid", ConvertAffineGrid, 2}, {"", "GridSample", ConvertGridSample, 2},
    {"", "MaxRoiPool", ConvertMaxRoiPool},    {"", "Resize", ConvertResize, 1},
    {"", "RoiAlign", ConvertRoiAlign},        {"", "Upsample", ConvertUpsample, 1},
};

}  // namespace

std::span<const OnnxConverter> OnnxImageConverters() { return kTable; }

}  // namespace ridge

// ONNX converters: resize, sampling, regions of interest.
#include "ridge/onnx/import/converters/image.h"

namespace ridge {
namespace {

constexpr OnnxConverter kTable[] = {
    {"", "AffineGrid", ConvertAffineGrid}, {"", "GridSample", ConvertGridSample},
    {"", "MaxRoiPool", ConvertMaxRoiPool}, {"", "Resize", ConvertResize},
    {"", "RoiAlign", ConvertRoiAlign},     {"", "Upsample", ConvertUpsample},
};

}  // namespace

std::span<const OnnxConverter> OnnxImageConverters() { return kTable; }

}  // namespace ridge

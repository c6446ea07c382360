// roi_align and max_roi_pool: a thread takes an output.
#include <fmt/format.h>

#include <limits>

#include "ridge/backend/cuda/kernels/roi_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kRoiAlignText = R"cuda(
RIDGE_KERNEL void roi_align(const $T* x, const $T* rois, const $I* indices, $T* y) {
  for (i64 e = Thread(); e < $count; e += Threads()) {
    const i64 c = e / $bins % $channels, r = e / ($bins * $channels), image = indices[r];
    R value = 0;
    if (image >= 0 && image < $batch) {
      const RoiBin bin = BinOf(rois + 4 * r, (int)(e % $bins));
      value = $value(bin, x + (image * $channels + c) * $pixels)$member;
    }
    Store(y, e, value);
  }
}
)cuda";

constexpr std::string_view kMaxRoiPoolText = R"cuda(
typedef $R R;
// Places [first, last) of a bin along an axis of a region; NaN has none.
struct BinRange {
  int first, last;
};
RIDGE_FUNCTION BinRange RangeOf(double from, double to, int bin, int bins, int extent) {
  const double start = round(from * $scale), end = round(to * $scale);
  const double size = (end - start + 1 < 1.0 ? 1.0 : end - start + 1) / bins;
  const double first = floor(bin * size) + start, last = ceil((bin + 1) * size) + start;
  if (!(first <= last)) return {0, 0};
  return {(int)Limited(first, 0.0, (double)extent), (int)Limited(last, 0.0, (double)extent)};
}
RIDGE_KERNEL void max_roi_pool(const $T* x, const $T* rois, $T* y, i64* place) {
  for (i64 e = Thread(); e < $count; e += Threads()) {
    const int bin_x = e % $out_width, bin_y = e / $out_width % $out_height;
    const i64 c = e / $out_width / $out_height % $channels;
    const $T* roi = rois + e / $out_width / $out_height / $channels * 5;
    const double image = (double)Load(roi, 0);
    R best = 0;
    i64 winner = $none;
    if (image >= 0 && image < $batch) {
      const i64 plane = ((i64)image * $channels + c) * $height * $width;
      const BinRange rows = RangeOf((double)Load(roi, 2), (double)Load(roi, 4), bin_y, $out_height, $height);
      const BinRange columns = RangeOf((double)Load(roi, 1), (double)Load(roi, 3), bin_x, $out_width, $width);
      for (int h = rows.first; h < rows.last; ++h)
        for (int w = columns.first; w < columns.last; ++w) {
          const i64 at = plane + (i64)h * $width + w;
          const R value = (R)Load(x, at);
          if (winner != $none && !(value > best) && !(IsNan(value) && !IsNan(best))) continue;
          best = value;
          winner = at;
        }
    }
    Store(y, e, best);
    place[e] = winner;
  }
}
)cuda";

const char* WriteRoiAlign(const OpCall& call, KernelText& text) {
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  const RoiGeometry g = RoiGeometryOf(call, x.dims, call.inputs[1].dims[0]);
  text.source = fmt::format("typedef {} R;\n", ComputeType(x.dtype)) +
                RoiText(g, StorageType(x.dtype)) +
                FillText(kRoiAlignText, {{"T", StorageType(x.dtype)},
                                         {"I", StorageType(call.inputs[2].dtype)},
                                         {"count", fmt::format("{}ll", y.elements())},
                                         {"bins", fmt::format("{}ll", g.out_height * g.out_width)},
                                         {"channels", fmt::format("{}ll", g.channels)},
                                         {"batch", fmt::format("{}ll", g.batch)},
                                         {"pixels", fmt::format("{}ll", g.height * g.width)},
                                         {"value", g.max ? "LargestOf" : "MeanOf"},
                                         {"member", g.max ? ".value" : ""}});
  text.launches = {
      {"roi_align",
       BlocksFor(y.elements()),
       kBlockThreads,
       {Argument::Input(0), Argument::Input(1), Argument::Input(2), Argument::Output(0)}}};
  return nullptr;
}

const char* WriteMaxRoiPool(const OpCall& call, KernelText& text) {
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  text.source = FillText(kMaxRoiPoolText,
                         {{"R", ComputeType(x.dtype)},
                          {"T", StorageType(x.dtype)},
                          {"scale", fmt::format("((double)({}))", call.number("spatial_scale"))},
                          {"count", fmt::format("{}ll", y.elements())},
                          {"none", fmt::format("{}ll", x.elements())},
                          {"batch", std::to_string(x.dims[0])},
                          {"channels", fmt::format("{}ll", x.dims[1])},
                          {"height", std::to_string(x.dims[2])},
                          {"width", std::to_string(x.dims[3])},
                          {"out_height", std::to_string(y.dims[2])},
                          {"out_width", std::to_string(y.dims[3])}});
  text.launches = {
      {"max_roi_pool",
       BlocksFor(y.elements()),
       kBlockThreads,
       {Argument::Input(0), Argument::Input(1), Argument::Output(0), Argument::Output(1)}}};
  return nullptr;
}

const char* WriteRoi(const OpDef& op, const OpCall& call, KernelText& text) {
  const Dims& x = call.inputs[0].dims;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t bins = call.integers("output")[0] * call.integers("output")[1];
  if (x[2] >= kMost || x[3] >= kMost || bins >= kMost) return refusal::kSize;
  return op.name == "roi_align" ? WriteRoiAlign(call, text) : WriteMaxRoiPool(call, text);
}

}  // namespace

TextKernelDef RoiTextKernel() {
  return {.name = "cuda.roi", .ops = {"roi_align", "max_roi_pool"}, .write = WriteRoi};
}

}  // namespace ridge::cuda

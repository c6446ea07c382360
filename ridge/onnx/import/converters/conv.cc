// ONNX converters: convolutions.
#include "ridge/onnx/import/converters/conv.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/graph/ops/shared/window.h"

namespace ridge {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 40;

bool AllEqual(const std::vector<int64_t>& list, int64_t value) {
  return std::all_of(list.begin(), list.end(), [value](int64_t v) { return v == value; });
}

// SAME: as many outputs as strides begin in the input; an odd padding's larger half is at the end
// (SAME_UPPER) or at the beginning (SAME_LOWER).
Status ReadPads(OnnxNode& n, const Dims& x, OnnxWindow& window) {
  const std::string auto_pad = n.text("auto_pad", "NOTSET");
  const size_t rank = window.rank();
  if (auto_pad == "NOTSET" || auto_pad.empty()) {
    RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> pads,
                           ReadList(n, "pads", 2 * rank, 0, 0, kMaxWindow));
    window.pad_begin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(rank));
    window.pad_end.assign(pads.begin() + static_cast<int64_t>(rank), pads.end());
    return Status();
  }
  window.pad_begin.assign(rank, 0);
  window.pad_end.assign(rank, 0);
  if (auto_pad == "VALID") return Status();
  if (auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER") {
    return n.Error(fmt::format(
        "auto_pad is \"{}\"; it must be NOTSET, SAME_UPPER, SAME_LOWER or VALID", auto_pad));
  }
  for (size_t d = 0; d < rank; ++d) {
    const int64_t input = x[d + 2], stride = window.stride[d];
    const int64_t last = (input + stride - 1) / stride - 1;
    const int64_t total = std::max<int64_t>(0, last * stride + window.span(d) - input);
    const int64_t small = total / 2, large = total - small;
    window.pad_begin[d] = auto_pad == "SAME_UPPER" ? small : large;
    window.pad_end[d] = total - window.pad_begin[d];
  }
  return Status();
}

Status CheckKernelShape(OnnxNode& n, const std::vector<int64_t>& kernel) {
  const std::vector<int64_t> given = n.integers("kernel_shape", kernel);
  if (given == kernel) return n.status();
  return n.Error(fmt::format("kernel_shape is {}, the weights' is {}; they must be the same",
                             DimsToString(given), DimsToString(kernel)));
}

Result<Value> ConvertConv(OnnxNode& n) {
  const Dims x = n.dims(0), w = n.dims(1);
  RIDGE_RETURN_IF_ERROR(CheckSpatial(n, x));
  if (w.size() != x.size()) {
    return n.Error(
        fmt::format("W has shape {}, X {}; both need one rank", DimsToString(w), DimsToString(x)));
  }
  const std::vector<int64_t> kernel(w.begin() + 2, w.end());
  RIDGE_RETURN_IF_ERROR(CheckKernelShape(n, kernel));
  RIDGE_ASSIGN_OR_RETURN(const OnnxWindow window, ReadWindow(n, x, kernel));
  AttrMap attrs = window.attrs();
  if (const int64_t groups = n.integer("group", 1); groups != 1) attrs["groups"] = groups;
  return Op("conv", {n[0], n[1], n[2]}, attrs);
}

constexpr OnnxConverter kTable[] = {
    {"", "Col2Im", ConvertCol2Im},
    {"", "Conv", ConvertConv, 2},
    {"", "ConvTranspose", ConvertConvTranspose, 2},
    {"", "DeformConv", ConvertDeformConv, 3},
};

}  // namespace

std::span<const OnnxConverter> OnnxConvConverters() { return kTable; }

AttrMap OnnxWindow::attrs() const {
  AttrMap attrs;
  if (!AllEqual(stride, 1)) attrs["stride"] = stride;
  if (!AllEqual(dilation, 1)) attrs["dilation"] = dilation;
  if (AllEqual(pad_begin, 0) && AllEqual(pad_end, 0)) return attrs;
  std::vector<int64_t> padding = pad_begin;
  padding.insert(padding.end(), pad_end.begin(), pad_end.end());
  attrs["padding"] = std::move(padding);
  return attrs;
}

Status CheckSpatial(OnnxNode& n, const Dims& x) {
  if (x.size() < 3 || x.size() > 5) {
    return n.Unsupported(fmt::format(
        "the input has shape {}; it must be [batch, channels, 1 to 3 spatial dimensions]",
        DimsToString(x)));
  }
  for (const int64_t extent : x) {
    if (extent > kMaxExtent) return n.Unsupported(fmt::format("extent {} is too large", extent));
  }
  return Status();
}

Result<std::vector<int64_t>> ReadList(OnnxNode& n, const char* name, size_t count, int64_t fallback,
                                      int64_t min, int64_t max) {
  std::vector<int64_t> list = n.integers(name);
  RIDGE_RETURN_IF_ERROR(n.status());
  if (list.empty()) list.assign(count, fallback);
  bool good = list.size() == count;
  for (const int64_t v : list) good = good && v >= min && v <= max;
  if (good) return list;
  return n.Error(fmt::format("{} is {}; it must have {} entries from {} to {}", name,
                             DimsToString(list), count, min, max));
}

Result<OnnxWindow> ReadWindow(OnnxNode& n, const Dims& x, std::vector<int64_t> kernel) {
  RIDGE_RETURN_IF_ERROR(CheckSpatial(n, x));
  OnnxWindow window;
  const size_t rank = x.size() - 2;
  window.kernel = kernel.empty() ? n.integers("kernel_shape") : std::move(kernel);
  bool good = window.rank() == rank;
  for (const int64_t k : window.kernel) good = good && k >= 1 && k <= kMaxWindow;
  if (!good) {
    return n.Error(fmt::format("the kernel is {}; it must have {} entries from 1 to {}",
                               DimsToString(window.kernel), rank, kMaxWindow));
  }
  RIDGE_ASSIGN_OR_RETURN(window.stride, ReadList(n, "strides", rank, 1, 1, kMaxWindow));
  RIDGE_ASSIGN_OR_RETURN(window.dilation, ReadList(n, "dilations", rank, 1, 1, kMaxWindow));
  RIDGE_RETURN_IF_ERROR(ReadPads(n, x, window));
  return window;
}

Result<Value> AddChannelBias(OnnxNode& n, Value y, Value bias) {
  if (!n.ok()) return n.status();
  if (!bias.valid()) return y;
  const Dims dims = y.dims();
  if (bias.dims() != Dims{dims.at(1)}) {
    return n.Error(
        fmt::format("the bias has shape {}; it must be [{}], one number for each output "
                    "channel",
                    DimsToString(bias.dims()), dims.at(1)));
  }
  Dims wide(dims.size(), 1);
  wide[1] = dims[1];
  return y + ReshapeExactly(bias, wide);
}

}  // namespace ridge

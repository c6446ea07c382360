// ConvTranspose and Col2Im: both scatter what a convolution gathers, so both are conv_grad_input.
//
// Along one dimension the windows of all inputs reach over `full` = stride * (in - 1) + span
// positions; the output is [begin, begin + out) of them.  What lies outside is zero: output_padding
// may ask for it at the end, an output_shape that is larger than `full` on both sides.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/graph/ops/shared/window.h"
#include "ridge/onnx/import/converters/conv.h"

namespace ridge {
namespace {

// The output along one dimension.
struct Part {
  int64_t full = 0, begin = 0, out = 0;
};

// What conv_grad_input makes of it, and the zeros around that.
struct Cut {
  std::vector<int64_t> extents, pad_begin, pad_end, zeros_before, zeros_after;
  bool has_zeros = false;
};

Cut CutParts(const std::vector<Part>& parts, const OnnxWindow& window) {
  Cut cut;
  for (size_t d = 0; d < parts.size(); ++d) {
    const Part& part = parts[d];
    const int64_t end = part.begin + part.out;
    const int64_t first = std::max<int64_t>(part.begin, 0);
    const int64_t last = std::min(end, part.full + window.stride[d] - 1);  // still `in` windows
    cut.extents.push_back(last - first);
    cut.pad_begin.push_back(first);
    cut.pad_end.push_back(std::max<int64_t>(0, part.full - last));
    cut.zeros_before.push_back(first - part.begin);
    cut.zeros_after.push_back(end - last);
    cut.has_zeros = cut.has_zeros || first > part.begin || end > last;
  }
  return cut;
}

// Entries for the spatial dimensions; some tools write batch and channels too.
Result<std::vector<int64_t>> ReadOutputShape(OnnxNode& n, size_t rank) {
  std::vector<int64_t> shape = n.integers("output_shape");
  if (shape.size() == rank + 2) shape.erase(shape.begin(), shape.begin() + 2);
  bool good = shape.empty() || shape.size() == rank;
  for (const int64_t extent : shape) good = good && extent >= 1 && extent <= int64_t{1} << 40;
  if (good) return shape;
  return n.Error(fmt::format("output_shape is {}; it must have {} entries, at least 1",
                             DimsToString(shape), rank));
}

// Half of what must be cut is cut at the beginning; of an odd number the larger half, but not with
// SAME_UPPER.
int64_t BeginOf(int64_t total, bool same_upper) {
  const int64_t small = total >= 0 ? total / 2 : -((-total + 1) / 2);
  return same_upper ? small : total - small;
}

Result<std::vector<Part>> ReadParts(OnnxNode& n, const Dims& x, const OnnxWindow& window) {
  const size_t rank = window.rank();
  const std::string auto_pad = n.text("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> extra,
                         ReadList(n, "output_padding", rank, 0, 0, kMaxWindow));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, ReadOutputShape(n, rank));
  std::vector<Part> parts;
  for (size_t d = 0; d < rank; ++d) {
    Part part;
    part.full = window.stride[d] * (x[d + 2] - 1) + window.span(d);
    const int64_t padded = part.full + extra[d];
    part.begin = window.pad_begin[d];
    part.out = padded - window.pad_begin[d] - window.pad_end[d];
    if (!shape.empty() || same) {
      part.out = shape.empty() ? x[d + 2] * window.stride[d] : shape[d];
      part.begin = BeginOf(padded - part.out, auto_pad == "SAME_UPPER");
    }
    const int64_t last = std::min(part.begin + part.out, part.full + window.stride[d] - 1);
    if (x[d + 2] < 1 || last <= std::max<int64_t>(part.begin, 0)) {
      return n.Error(
          fmt::format("the output would be {} long along spatial dimension {}; it must "
                      "hold at least one position of a window",
                      part.out, d));
    }
    parts.push_back(part);
  }
  return parts;
}

// conv_grad_input of dy by w over [batch, channels, the parts].
Value Transposed(GraphBuilder& b, Value dy, Value w, int64_t channels, OnnxWindow window,
                 const std::vector<Part>& parts, int64_t groups) {
  if (!b.ok()) return {};
  Cut cut = CutParts(parts, window);
  window.pad_begin = cut.pad_begin;
  window.pad_end = cut.pad_end;
  AttrMap attrs = window.attrs();
  Dims dims = {dy.dims().at(0), channels};
  dims.insert(dims.end(), cut.extents.begin(), cut.extents.end());
  attrs["input_dims"] = dims;
  if (groups != 1) attrs["groups"] = groups;
  const Value y = Op("conv_grad_input", {dy, w}, attrs);
  if (!cut.has_zeros) return y;
  cut.zeros_before.insert(cut.zeros_before.begin(), 2, 0);
  cut.zeros_after.insert(cut.zeros_after.begin(), 2, 0);
  return Op("pad", {y}, {{"before", cut.zeros_before}, {"after", cut.zeros_after}});
}

Result<std::vector<int64_t>> ReadPositive(OnnxNode& n, size_t i, const char* what, int64_t max) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> list, n.ConstantInts(i, what));
  bool good = !list.empty() && list.size() <= 3;
  for (const int64_t v : list) good = good && v >= 1 && v <= max;
  if (good) return list;
  return n.Error(fmt::format("{} is {}; it must have 1 to 3 entries from 1 to {}", what,
                             DimsToString(list), max));
}

// Row k has a one at tap k: [taps, 1, kernel].
Tensor OneHotTaps(DType dtype, const OnnxWindow& window, int64_t taps) {
  Dims dims = {taps, 1};
  dims.insert(dims.end(), window.kernel.begin(), window.kernel.end());
  Tensor tensor({dtype, dims});
  for (int64_t k = 0; k < taps; ++k) StoreFromDouble(dtype, tensor.mutable_data(), k * taps + k, 1);
  return tensor;
}

// Of X [batch, channels * taps, blocks]: how the blocks lie in the image, and that all fits.
Result<std::vector<Part>> ReadBlocks(OnnxNode& n, const Dims& x, const Dims& image,
                                     const OnnxWindow& window, int64_t taps, Dims& blocks) {
  std::vector<Part> parts;
  int64_t count = 1;
  for (size_t d = 0; d < window.rank(); ++d) {
    const int64_t padded = image[d + 2] + window.pad_begin[d] + window.pad_end[d];
    if (padded < window.span(d)) {
      return n.Error(
          fmt::format("the block spans {}, the image with its pads {}", window.span(d), padded));
    }
    const int64_t along = (padded - window.span(d)) / window.stride[d] + 1;
    blocks.push_back(along);
    count = SaturatedProduct({count, along});
    parts.push_back({.full = window.stride[d] * (along - 1) + window.span(d),
                     .begin = window.pad_begin[d],
                     .out = image[d + 2]});
  }
  if (x[1] % taps == 0 && x[2] == count) return parts;
  return n.Error(fmt::format("X has shape {}; it must be [batch, channels * {}, {}]",
                             DimsToString(x), taps, count));
}

}  // namespace

Result<Value> ConvertConvTranspose(OnnxNode& n) {
  const Dims x = n.dims(0), w = n.dims(1);
  RIDGE_RETURN_IF_ERROR(CheckSpatial(n, x));
  if (w.size() != x.size()) {
    return n.Error(
        fmt::format("W has shape {}, X {}; both need one rank", DimsToString(w), DimsToString(x)));
  }
  RIDGE_ASSIGN_OR_RETURN(const OnnxWindow window, ReadWindow(n, x, {w.begin() + 2, w.end()}));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Part> parts, ReadParts(n, x, window));
  const int64_t groups = n.integer("group", 1);
  if (groups < 1 || groups > kMaxWindow) {
    return n.Error(fmt::format("group is {}; it must be from 1 to {}", groups, kMaxWindow));
  }
  const int64_t channels = SaturatedProduct({w[1], groups});
  const Value weight = n[1], image = n[0];
  const Value y = Transposed(n.b(), image, weight, channels, window, parts, groups);
  return AddChannelBias(n, y, n[2]);
}

// Each channel is an image of its own whose blocks are weighted by one-hot taps.
Result<Value> ConvertCol2Im(OnnxNode& n) {
  constexpr int64_t kMostTaps = 4096;  // the weights are taps * taps
  RIDGE_RETURN_IF_ERROR(n.Need(3));
  const Dims x = n.dims(0);
  RIDGE_ASSIGN_OR_RETURN(Dims image, ReadPositive(n, 1, "image_shape", int64_t{1} << 40));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> block,
                         ReadPositive(n, 2, "block_shape", kMostTaps));
  int64_t taps = 1;
  for (const int64_t k : block) taps = SaturatedProduct({taps, k});
  if (x.size() != 3 || image.size() != block.size() || taps > kMostTaps) {
    return n.Unsupported(
        fmt::format("X has shape {}, image_shape is {}, block_shape {}; X must "
                    "have 3 dimensions, the others one rank, a block up to {} "
                    "elements",
                    DimsToString(x), DimsToString(image), DimsToString(block), kMostTaps));
  }
  image.insert(image.begin(), 2, 1);
  RIDGE_ASSIGN_OR_RETURN(const OnnxWindow window, ReadWindow(n, image, block));
  const int64_t channels = x[1] / taps;
  Dims columns = {x[0] * channels, taps};
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Part> parts,
                         ReadBlocks(n, x, image, window, taps, columns));
  GraphBuilder& b = n.b();
  const Value w = b.Constant(OneHotTaps(n.type(0).dtype, window, taps));
  const Value images = Transposed(b, ReshapeExactly(n[0], columns), w, 1, window, parts, 1);
  image[0] = x[0];
  image[1] = channels;
  return ReshapeExactly(images, image);
}

}  // namespace ridge

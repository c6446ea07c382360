// ONNX converters: Pad and CenterCropPad.
//
// Negative amounts are a slice that comes first, zeros a pad.  The other modes take along each
// padded axis: one gather with constant indices, whose gradient adds up what was taken twice.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/onnx/import/converters/shape.h"

namespace ridge {

Status OnnxCheckPads(const OnnxNode& n, const Dims& dims, const std::vector<int64_t>& before,
                     const std::vector<int64_t>& after) {
  constexpr int64_t kMost = int64_t{1} << 48;
  Dims padded = dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool sane = std::clamp(before[d], -kMost, kMost) == before[d] &&
                      std::clamp(after[d], -kMost, kMost) == after[d];
    const int64_t removed =
        sane ? std::min<int64_t>(before[d], 0) + std::min<int64_t>(after[d], 0) : 0;
    if (!sane || dims[d] + removed < 0) {
      return n.Error(fmt::format("pads {} before and {} after axis {} of extent {}", before[d],
                                 after[d], d, dims[d]));
    }
    padded[d] += before[d] + after[d];
  }
  const Status status = CheckDims(padded);
  return status.ok() ? status : n.Error(status.message());
}

namespace {

struct Pads {
  std::vector<int64_t> before, after;  // one a dimension
  std::string mode;
  double value = 0;
};

// Pads of the given axes, as ONNX lists them: all begins, then all ends.
Status SpreadPads(OnnxNode& n, const std::vector<int64_t>& list, const std::vector<int64_t>& axes,
                  size_t rank, Pads& pads) {
  RIDGE_RETURN_IF_ERROR(CheckOnnxAxesOnce(n, axes));
  if (list.size() != 2 * axes.size()) {
    return n.Error(fmt::format("pads is {}; {} numbers are needed, two for each of {} axes",
                               DimsToString(list), 2 * axes.size(), axes.size()));
  }
  pads.before.assign(rank, 0);
  pads.after.assign(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    pads.before[static_cast<size_t>(axes[i])] = list[i];
    pads.after[static_cast<size_t>(axes[i])] = list[axes.size() + i];
  }
  return Status();
}

Result<Pads> ReadPads(OnnxNode& n, size_t rank) {
  Pads pads;
  std::vector<int64_t> list, axes;
  for (size_t d = 0; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
  pads.mode = n.text("mode", "constant");
  if (n.opset() < 11) {
    list = n.integers(n.has_attr("paddings") ? "paddings" : "pads");
    pads.value = n.number("value", 0);
  } else {
    RIDGE_RETURN_IF_ERROR(n.Need(2));
    RIDGE_ASSIGN_OR_RETURN(list, n.ConstantInts(1, "pads"));
    if (n.has_input(2) && pads.mode == "constant") {
      RIDGE_ASSIGN_OR_RETURN(pads.value, n.ConstantNumber(2, "constant_value"));
    }
    RIDGE_ASSIGN_OR_RETURN(axes, n.Axes("axes", 3, static_cast<int>(rank), axes));
  }
  RIDGE_RETURN_IF_ERROR(SpreadPads(n, list, axes, rank, pads));
  return pads;
}

// Removes what negative amounts say, and sets them to 0.
Value Crop(Value x, const Dims& dims, Pads& pads) {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (pads.before[d] >= 0 && pads.after[d] >= 0) continue;
    const int64_t start = std::max<int64_t>(-pads.before[d], 0);
    const int64_t end = dims[d] + std::min<int64_t>(pads.after[d], 0);
    x = Slice(x, static_cast<int64_t>(d), start, std::max(start, end), 1);
    pads.before[d] = std::max<int64_t>(pads.before[d], 0);
    pads.after[d] = std::max<int64_t>(pads.after[d], 0);
  }
  return x;
}

Value PadWithValue(Value x, const Pads& pads) {
  const auto none = [](int64_t amount) { return amount == 0; };
  if (std::all_of(pads.before.begin(), pads.before.end(), none) &&
      std::all_of(pads.after.begin(), pads.after.end(), none)) {
    return x;
  }
  return Op("pad", {x}, {{"before", pads.before}, {"after", pads.after}, {"value", pads.value}});
}

// The element that stands at `place`, which may lie outside [0, extent).  REQUIRES: extent > 0.
int64_t SourceOf(const std::string& mode, int64_t place, int64_t extent) {
  if (mode == "edge") return std::clamp<int64_t>(place, 0, extent - 1);
  const int64_t period = mode == "wrap" ? extent : std::max<int64_t>(2 * (extent - 1), 1);
  const int64_t at = (place % period + period) % period;
  return mode == "wrap" || at < extent ? at : period - at;
}

Result<Value> PadByTaking(OnnxNode& n, Value x, const Pads& pads) {
  constexpr int64_t kMost = int64_t{1} << 22;
  for (size_t d = 0; d < pads.before.size() && n.ok(); ++d) {
    if (pads.before[d] == 0 && pads.after[d] == 0) continue;
    const int64_t extent = x.dims()[d];
    const int64_t count = pads.before[d] + extent + pads.after[d];
    if (extent == 0 || count > kMost) {
      return n.Error(
          fmt::format("mode {} pads axis {} from {} to {}; it needs at least one "
                      "element and gives at most 2^22",
                      pads.mode, d, extent, count));
    }
    std::vector<int64_t> from;
    for (int64_t i = 0; i < count; ++i)
      from.push_back(SourceOf(pads.mode, i - pads.before[d], extent));
    const Value indices = n.b().Constant(Tensor::FromInts({count}, from), "pad_index");
    x = Gather(x, indices, static_cast<int64_t>(d));
  }
  return x;
}

}  // namespace

Result<Value> ConvertPad(OnnxNode& n) {
  const Dims dims = n.dims(0);
  RIDGE_ASSIGN_OR_RETURN(Pads pads, ReadPads(n, dims.size()));
  RIDGE_RETURN_IF_ERROR(OnnxCheckPads(n, dims, pads.before, pads.after));
  Value x = Crop(n[0], dims, pads);
  if (pads.mode == "constant") {
    x = PadWithValue(x, pads);
  } else if (pads.mode == "reflect" || pads.mode == "edge" || pads.mode == "wrap") {
    RIDGE_ASSIGN_OR_RETURN(x, PadByTaking(n, x, pads));
  } else {
    return n.Error(
        fmt::format("mode is \"{}\"; it must be constant, reflect, edge or wrap", pads.mode));
  }
  return x;
}

// The window in the middle: what is odd is cut before and padded after.
Result<Value> ConvertCenterCropPad(OnnxNode& n) {
  const Dims dims = n.dims(0);
  std::vector<int64_t> all;
  for (size_t d = 0; d < dims.size(); ++d) all.push_back(static_cast<int64_t>(d));
  std::vector<int64_t> axes = n.integers("axes", all);
  for (int64_t& axis : axes) {
    RIDGE_ASSIGN_OR_RETURN(axis, n.Axis(axis, static_cast<int>(dims.size())));
  }
  RIDGE_RETURN_IF_ERROR(CheckOnnxAxesOnce(n, axes));
  RIDGE_ASSIGN_OR_RETURN(const Dims wanted, n.ConstantInts(1, "shape"));
  if (wanted.size() != axes.size() || !CheckDims(wanted).ok()) {
    return n.Error(fmt::format("shape is {}; it must have one extent for each of {} axes",
                               DimsToString(wanted), axes.size()));
  }
  Pads pads{Dims(dims.size(), 0), Dims(dims.size(), 0), "constant", 0};
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(axes[i]);
    const int64_t missing = wanted[i] - dims[d];
    pads.before[d] = missing / 2;  // toward zero: the smaller half of both
    pads.after[d] = missing - pads.before[d];
  }
  RIDGE_RETURN_IF_ERROR(OnnxCheckPads(n, dims, pads.before, pads.after));
  const Value cropped = Crop(n[0], dims, pads);
  return PadWithValue(cropped, pads);
}

}  // namespace ridge

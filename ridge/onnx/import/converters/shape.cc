// ONNX converters: moving without computing: reshape, transpose, slice, concat, pad, constants and
// ranges.  Here: what only changes a shape or asks for one.
#include "ridge/onnx/import/converters/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/converter.h"

namespace ridge {

Result<Value> OnnxIota(OnnxNode& n, int64_t count) {
  constexpr int64_t kMost = int64_t{1} << 22;
  if (count < 0 || count > kMost) {
    return n.Unsupported(
        fmt::format("needs the numbers 0 to {}; at most 2^22 are supported", count));
  }
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) numbers[static_cast<size_t>(i)] = i;
  return n.b().Constant(Tensor::FromInts({count}, numbers), "iota");
}

Value OnnxFilled(GraphBuilder& b, const TensorType& type, double value) {
  return Expand(b.Scalar(type.dtype, value), type.dims);
}

int64_t OnnxElementCount(const Dims& dims, size_t begin, size_t end) {
  int64_t extent = 1;
  for (size_t d = begin; d < end && d < dims.size(); ++d) extent *= dims[d];
  return extent;
}

Status CheckOnnxAxesOnce(const OnnxNode& n, const std::vector<int64_t>& axes) {
  std::vector<int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return Status();
  return n.Error(fmt::format("axes is {}; axis {} is there twice", DimsToString(axes), *twice));
}

Result<DType> OnnxDTypeAttr(OnnxNode& n, const char* name, DType fallback) {
  if (!n.has_attr(name)) return fallback;
  const int64_t given = n.integer(name, 0);
  const bool fits = given >= 0 && given < 1000;
  const std::optional<DType> dtype =
      fits ? DTypeFromOnnx(static_cast<int>(given)) : std::optional<DType>();
  if (dtype) return *dtype;
  return n.Unsupported(fmt::format("{} is {}, {}; that is no element type we hold", name, given,
                                   fits ? OnnxTypeName(static_cast<int>(given)) : "unknown"));
}

namespace {

Result<Value> ConvertIdentity(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  return n.TensorOrSequence(0);
}

int64_t ClampedEnd(int64_t end, int64_t rank) {
  return std::clamp<int64_t>(end < 0 ? end + rank : end, 0, rank);
}

Result<Value> ConvertShape(OnnxNode& n) {
  const Dims dims = n.dims(0);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t start = ClampedEnd(n.integer("start", 0), rank);
  const int64_t end = ClampedEnd(n.integer("end", rank), rank);
  const Dims part = start < end ? Dims(dims.begin() + start, dims.begin() + end) : Dims();
  return n.b().Constant(Tensor::FromInts({static_cast<int64_t>(part.size())}, part), "shape");
}

Result<Value> ConvertSize(OnnxNode& n) {
  const std::vector<int64_t> size = {n.type(0).elements()};
  return n.b().Constant(Tensor::FromInts({}, size), "size");
}

Result<Value> ConvertReshape(OnnxNode& n) {
  std::vector<int64_t> dims;
  if (n.opset() < 5) {
    dims = n.integers("shape");
  } else {
    RIDGE_RETURN_IF_ERROR(n.Need(2));
    RIDGE_ASSIGN_OR_RETURN(dims, n.ConstantInts(1, "shape"));
  }
  const int64_t allow_zero = n.integer("allowzero", 0);
  return Op("reshape", {n[0]}, {{"dims", dims}, {"allow_zero", allow_zero != 0}});
}

Result<Value> ConvertFlatten(OnnxNode& n) {
  const Dims dims = n.dims(0);
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = n.integer("axis", 1);
  if (axis < -rank || axis > rank) {
    return n.Error(fmt::format("axis is {} but the input has rank {}; it must be in [{}, {}]", axis,
                               rank, -rank, rank));
  }
  if (axis < 0) axis += rank;
  const auto at = static_cast<size_t>(axis);
  return ReshapeExactly(n[0],
                        {OnnxElementCount(dims, 0, at), OnnxElementCount(dims, at, dims.size())});
}

Result<Value> ConvertSqueeze(OnnxNode& n) {
  const Dims dims = n.dims(0);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                         n.Axes("axes", 1, static_cast<int>(dims.size())));
  const bool all = !n.has_attr("axes") && !n.has_input(1);
  std::vector<bool> dropped(dims.size(), false);
  for (size_t d = 0; d < dims.size(); ++d) dropped[d] = all && dims[d] == 1;
  for (int64_t axis : axes) {
    const auto d = static_cast<size_t>(axis);
    if (dims[d] != 1) {
      return n.Error(fmt::format("axis {} of {} has extent {}; only 1 can be squeezed", axis,
                                 DimsToString(dims), dims[d]));
    }
    dropped[d] = true;
  }
  Dims left;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!dropped[d]) left.push_back(dims[d]);
  }
  return ReshapeExactly(n[0], left);
}

Result<Value> ConvertUnsqueeze(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(n.opset() < 13 ? 1 : 2));
  const Dims dims = n.dims(0);
  std::vector<int64_t> axes = n.integers("axes");
  if (!n.has_attr("axes")) {
    RIDGE_RETURN_IF_ERROR(n.Need(2));
    RIDGE_ASSIGN_OR_RETURN(axes, n.ConstantInts(1, "axes"));
  }
  const size_t rank = dims.size() + axes.size();
  if (rank > 16) return n.Error(fmt::format("the output has rank {}; at most 16", rank));
  for (int64_t& axis : axes) {
    RIDGE_ASSIGN_OR_RETURN(axis, n.Axis(axis, static_cast<int>(rank)));
  }
  RIDGE_RETURN_IF_ERROR(CheckOnnxAxesOnce(n, axes));
  Dims wider;
  auto next = dims.begin();
  for (size_t d = 0; d < rank; ++d) {
    const bool added = std::count(axes.begin(), axes.end(), static_cast<int64_t>(d)) > 0;
    wider.push_back(added ? 1 : *next++);
  }
  return ReshapeExactly(n[0], wider);
}

Result<Value> ConvertTranspose(OnnxNode& n) {
  if (n.dims(0).empty()) return ConvertIdentity(n);
  std::vector<int64_t> perm = n.integers("perm");
  for (int64_t& axis : perm) {
    RIDGE_ASSIGN_OR_RETURN(axis, n.Axis(axis, static_cast<int>(n.dims(0).size())));
  }
  return Transpose(n[0], perm);
}

// Both sides stretch.
Result<Value> ConvertExpand(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Dims wanted, n.ConstantInts(1, "shape"));
  if (Status status = CheckDims(wanted); !status.ok()) return n.Error("shape: " + status.message());
  Result<Dims> dims = BroadcastDims(n.dims(0), wanted);
  if (!dims.ok()) return n.Error(dims.status().message());
  return Expand(n[0], *dims);
}

constexpr OnnxConverter kConverters[] = {
    {"", "CenterCropPad", ConvertCenterCropPad, 2},
    {"", "Concat", ConvertConcat},
    {"", "Constant", ConvertConstant},
    {"", "ConstantOfShape", ConvertConstantOfShape, 1},
    {"", "DepthToSpace", ConvertDepthToSpace, 1},
    {"", "Expand", ConvertExpand, 2},
    {"", "EyeLike", ConvertEyeLike, 1},
    {"", "Flatten", ConvertFlatten, 1},
    {"", "Identity", ConvertIdentity},
    {"", "OneHot", ConvertOneHot},
    {"", "Pad", ConvertPad, 1},
    {"", "Range", ConvertRange, 3},
    {"", "Reshape", ConvertReshape, 1},
    {"", "ReverseSequence", ConvertReverseSequence, 2},
    {"", "Shape", ConvertShape, 1},
    {"", "Size", ConvertSize, 1},
    {"", "Slice", ConvertSlice},
    {"", "SpaceToDepth", ConvertSpaceToDepth, 1},
    {"", "Split", ConvertSplit, 1},
    {"", "Squeeze", ConvertSqueeze, 1},
    {"", "Tile", ConvertTile, 1},
    {"", "Transpose", ConvertTranspose, 1},
    {"", "Trilu", ConvertTrilu, 1},
    {"", "Unsqueeze", ConvertUnsqueeze},
};

}  // namespace

std::span<const OnnxConverter> OnnxShapeConverters() { return kConverters; }

}  // namespace ridge

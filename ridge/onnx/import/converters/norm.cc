// ONNX converters: normalizations and softmax.
//
// Instance and group norm are layer norm over a reshaped x: a reshape costs nothing, so they share
// its kernel and its gradient.
#include "ridge/onnx/import/converters/norm.h"

#include <fmt/format.h>

#include <cmath>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/norm.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/converter.h"

namespace ridge {
namespace {

// v, broadcast to `dims` and in `dtype`, when it can be; else invalid.
Value ExpandedTo(Value v, const Dims& dims, DType dtype) {
  const Result<Dims> together = BroadcastDims(v.dims(), dims);
  if (!together.ok() || *together != dims) return {};
  const Value cast = Cast(v, dtype);
  return v.dims() == dims ? cast : Expand(cast, dims);
}

// Extents 1 for what was normalized, as ONNX has it: x.dims[..axis), 1, 1, ...
Value WithTrailingOnes(Value v, int rank) {
  Dims dims = v.dims();
  dims.resize(static_cast<size_t>(rank), 1);
  return ReshapeExactly(v, dims);
}

// The dtype of the statistics that `stash_type` asks for.
Result<DType> StashType(OnnxNode& n) {
  const int64_t stash = n.integer("stash_type", 1);
  const std::optional<DType> dtype = DTypeFromOnnx(static_cast<int>(stash));
  if (dtype && IsFloat(*dtype)) return *dtype;
  return n.Error(fmt::format("stash_type is {}; it must be a float type", stash));
}

// scale * y + shift, where either may be absent.
Value Affine(Value y, Value scale, Value shift) {
  const DType dtype = y.dtype();
  if (scale.valid()) y = y * Cast(scale, dtype);
  if (shift.valid()) y = y + Cast(shift, dtype);
  return y;
}

Status ConvertLayerNormalization(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(NeedFloat(n, 1));
  const Value x = n[0], scale = n[1], shift = n[2];
  const TensorType type = x.type();
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.integer("axis", -1), type.rank()));
  RIDGE_ASSIGN_OR_RETURN(const DType stash, StashType(n));
  const AttrMap attrs = {{"axis", axis}, {"epsilon", Epsilon(n)}};
  const Dims row = TrailingDims(type.dims, static_cast<int>(axis));
  const DType statistic = StatisticDType(type.dtype);
  const Value row_scale = scale.valid() ? ExpandedTo(scale, row, statistic) : Value{};
  const Value row_shift = shift.valid() ? ExpandedTo(shift, row, statistic) : Value{};
  // A scale that is not the same for all rows is applied afterwards.
  const bool inside = row_scale.valid() == scale.valid() && row_shift.valid() == shift.valid();
  std::vector<Value> out;
  if (inside) {
    out = OpOutputs("layer_norm", {x, row_scale, row_shift}, attrs);
  } else {
    out = OpOutputs("layer_norm", {x}, attrs);
    if (n.ok()) out[0] = Affine(out[0], scale, shift);
  }
  n.Set(0, out[0]);
  if (n.wants(1)) n.Set(1, Cast(WithTrailingOnes(out[1], type.rank()), stash));
  if (n.wants(2)) n.Set(2, Cast(WithTrailingOnes(out[2], type.rank()), stash));
  return n.status();
}

// y = x / sqrt(mean(x^2) + epsilon) * scale over the dimensions from axis on.
Result<Value> ConvertRmsNormalization(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(NeedFloat(n, 1));
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  const Value x = n[0], scale = n[1];
  const TensorType type = x.type();
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.integer("axis", -1), type.rank()));
  const AttrMap attrs = {{"axis", axis}, {"epsilon", Epsilon(n)}};
  // Statistics are wide enough for any stash_type.  A scale that is not the same for all rows is
  // applied afterwards.
  RIDGE_RETURN_IF_ERROR(StashType(n).status());
  const Value row_scale = ExpandedTo(scale, TrailingDims(type.dims, static_cast<int>(axis)),
                                     StatisticDType(type.dtype));
  const std::vector<Value> out = OpOutputs("rms_norm", {x, row_scale}, attrs);
  return row_scale.valid() ? out[0] : Affine(out[0], scale, {});
}

// layer_norm without scale and shift over x reshaped to [rows, ...], in x's own dims again.
Value NormalizeRows(OnnxNode& n, Value x, const Dims& rows) {
  const Dims dims = x.dims();
  const std::vector<Value> out =
      OpOutputs("layer_norm", {ReshapeExactly(x, rows)}, {{"epsilon", Epsilon(n)}});
  return n.ok() ? ReshapeExactly(out[0], dims) : Value{};
}

Result<Value> ConvertInstanceNormalization(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(NeedFloat(n, 2));
  RIDGE_RETURN_IF_ERROR(n.Need(3));
  const Value x = n[0];
  if (!n.ok()) return n.status();
  const TensorType type = x.type();
  const int64_t channels = type.dims[1];
  const Value scale = OverChannelsOf(n, n[1], channels, type.rank());
  const Value shift = OverChannelsOf(n, n[2], channels, type.rank());
  if (!n.ok()) return n.status();
  Value y = x;  // nothing to normalize when x is empty
  if (type.elements() > 0) {
    const int64_t planes = type.dims[0] * channels;
    y = NormalizeRows(n, x, {planes, type.elements() / planes});
  }
  return Affine(y, scale, shift);
}

// Since opset 21 scale and shift belong to channels; in 18 they belonged to groups.
Result<Value> ConvertGroupNormalization(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(NeedFloat(n, 2));
  RIDGE_RETURN_IF_ERROR(n.Need(3));
  const Value x = n[0];
  if (!n.ok()) return n.status();
  const TensorType type = x.type();
  const int64_t channels = type.dims[1], groups = n.integer("num_groups", 0);
  if (groups < 1 || channels % groups != 0) {
    return n.Error(
        fmt::format("num_groups is {}; it must divide the {} channels", groups, channels));
  }
  if (type.elements() == 0) {
    return x;
  }
  const bool per_group = n.opset() < 21;
  const Dims grouped = {type.dims[0], groups, type.elements() / (type.dims[0] * groups)};
  const Value normal = NormalizeRows(n, ReshapeExactly(x, grouped), grouped);
  const int64_t count = per_group ? groups : channels;
  const int rank = per_group ? 3 : type.rank();
  const Value scale = OverChannelsOf(n, n[1], count, rank);
  const Value shift = OverChannelsOf(n, n[2], count, rank);
  const Value y = per_group ? normal : ReshapeExactly(normal, type.dims);
  return ReshapeExactly(Affine(y, scale, shift), type.dims);
}

constexpr OnnxConverter kConverters[] = {
    {"", "BatchNormalization", ConvertBatchNormalization},
    {"", "GroupNormalization", ConvertGroupNormalization},
    {"", "InstanceNormalization", ConvertInstanceNormalization},
    {"", "LRN", ConvertLrn},
    {"", "LayerNormalization", ConvertLayerNormalization},
    {"", "LogSoftmax", ConvertLogSoftmax},
    {"", "LpNormalization", ConvertLpNormalization},
    {"", "MeanVarianceNormalization", ConvertMeanVarianceNormalization},
    {"", "RMSNormalization", ConvertRmsNormalization},
    {"", "Softmax", ConvertSoftmax},
};

}  // namespace

std::span<const OnnxConverter> OnnxNormConverters() { return kConverters; }

Status NeedFloat(OnnxNode& n, int rank) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  const TensorType type = n.type(0);
  if (IsFloat(type.dtype) && type.rank() >= rank) return Status();
  return n.Error(fmt::format("input 0 is {}; it must be a float with at least {} dimension{}",
                             TypeToString(type), rank, rank == 1 ? "" : "s"));
}

Value OverChannelsOf(OnnxNode& n, Value v, int64_t channels, int rank) {
  if (!n.ok()) return {};
  if (v.type().elements() != channels) {
    n.Fail(n.Error(fmt::format("scale or shift is {}; it must have {} elements",
                               TypeToString(v.type()), channels)));
    return {};
  }
  Dims dims(static_cast<size_t>(rank), 1);
  dims[1] = channels;
  return ReshapeExactly(v, dims);
}

double Epsilon(OnnxNode& n) {
  const double epsilon = n.number("epsilon", 1e-5);
  if (std::isfinite(epsilon) && epsilon >= 0) return epsilon;
  n.Fail(n.Error(fmt::format("epsilon is {}; it must be finite and at least 0", epsilon)));
  return 1e-5;
}

}  // namespace ridge

#include "ridge/graph/ops/shared/reduce.h"

#include <fmt/format.h>

#include <cmath>

namespace ridge {

bool IsReduction(const OpDef& op) {
  return op.input_names.size() == 1 && op.attr_defaults.contains("axes") &&
         op.attr_defaults.contains("keep_dims");
}

Result<std::vector<bool>> ReducedAxes(const OpCall& call) {
  const int rank = call.inputs[0].rank();
  const std::vector<int64_t>& axes = call.integers("axes");
  std::vector<bool> reduced(static_cast<size_t>(rank), axes.empty());
  for (int64_t axis : axes) {
    RIDGE_ASSIGN_OR_RETURN(const int at, NormalizeAxis(axis, rank, call.where));
    if (reduced[static_cast<size_t>(at)]) {
      return CallError(call,
                       fmt::format("axes is {}; axis {} is there twice", DimsToString(axes), at));
    }
    reduced[static_cast<size_t>(at)] = true;
  }
  return reduced;
}

Axes KeptAxes(const OpCall& call) {
  const Result<std::vector<bool>> reduced = ReducedAxes(call);
  Axes axes;
  int output = 0;
  for (int d = 0; reduced.ok() && d < call.inputs[0].rank(); ++d) {
    const bool gone = (*reduced)[static_cast<size_t>(d)];
    if (!gone) axes.push_back(Mapped(call, {d}, output));
    if (!gone || call.integer("keep_dims") != 0) ++output;
  }
  return axes;
}

namespace {

Axes AxesOver(const OpCall& call, Factor::Over over) {
  const Result<std::vector<bool>> reduced = ReducedAxes(call);
  Axes axes = KeptAxes(call);
  for (int d = 0; reduced.ok() && d < call.inputs[0].rank(); ++d) {
    if ((*reduced)[static_cast<size_t>(d)]) axes.push_back(Summed(call, d, over));
  }
  return axes;
}

}  // namespace

Axes SummedAxes(const OpCall& call) { return AxesOver(call, Factor::Over::kSum); }

Axes MaximizedAxes(const OpCall& call) { return AxesOver(call, Factor::Over::kMax); }

Axes MinimizedAxes(const OpCall& call) { return AxesOver(call, Factor::Over::kMin); }

Axes AveragedAxes(const OpCall& call) { return AxesOver(call, Factor::Over::kMean); }

Dims KeptDims(const Dims& dims, const std::vector<int64_t>& axes) {
  if (axes.empty()) return Dims(dims.size(), 1);
  Dims kept = dims;
  const auto rank = static_cast<int64_t>(dims.size());
  for (int64_t axis : axes) kept[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = 1;
  return kept;
}

Dims KeptDims(const OpCall& call) { return KeptDims(call.inputs[0].dims, call.integers("axes")); }

int64_t FirstLargest(const double* x, int64_t count, int64_t stride) {
  int64_t best = 0;
  for (int64_t k = 0; k < count; ++k) {
    const double candidate = x[k * stride];
    if (std::isnan(candidate)) return k;
    if (candidate > x[best * stride]) best = k;
  }
  return best;
}

int64_t ReducedWidth(const Dims& dims, const std::vector<int64_t>& axes) {
  const Dims kept = KeptDims(dims, axes);
  int64_t width = 1;
  for (size_t d = 0; d < dims.size(); ++d) width *= kept[d] == dims[d] ? 1 : dims[d];
  return width;
}

namespace {

// Sums may be of a wider float than what they add up.
Result<DType> ResultDType(const OpCall& call) {
  const DType in = call.inputs[0].dtype;
  if (!call.attrs.contains("out_dtype") || call.text("out_dtype").empty()) return in;
  const std::optional<DType> out = ParseDType(call.text("out_dtype"));
  if (out && IsFloat(*out) && IsFloat(in) && BytesPerElement(*out) >= BytesPerElement(in))
    return *out;
  return CallError(call, fmt::format("out_dtype is \"{}\" for sums of {}; it must be a float type "
                                     "at least as wide, or be left out",
                                     call.text("out_dtype"), DTypeName(in)));
}

}  // namespace

Result<std::vector<TensorType>> ReduceTypes(const OpCall& call, Operands operands,
                                            EmptyAxis empty) {
  const TensorType& x = call.inputs[0];
  RIDGE_RETURN_IF_ERROR(CheckOperand(call, "the input", x, operands));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReducedAxes(call));
  Dims dims;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    if (!reduced[d]) dims.push_back(x.dims[d]);
    if (reduced[d] && call.integer("keep_dims") != 0) dims.push_back(1);
  }
  if (empty == EmptyAxis::kRefused && x.elements() == 0 && ElementCount(dims) > 0) {
    return CallError(call, fmt::format("the input is {}: nothing to choose from along axes {}; "
                                       "at least one element is needed",
                                       TypeToString(x), DimsToString(call.integers("axes"))));
  }
  RIDGE_ASSIGN_OR_RETURN(const DType out, ResultDType(call));
  return std::vector<TensorType>{{out, std::move(dims)}};
}

Cost ReduceCost(const OpCall& call) {
  return {.flops = call.inputs[0].elements(),
          .bytes_read = call.inputs[0].bytes(),
          .bytes_written = call.outputs[0].bytes()};
}

Value SumAs(Value x, const std::vector<int64_t>& axes, DType dtype) {
  if (x.dtype() == dtype) return Sum(x, axes);
  return Op("reduce_sum", {x}, {{"axes", axes}, {"out_dtype", dtype}});
}

Value WithKeptDims(GradBuilder& g, Value v) {
  return ReshapeExactly(v, KeptDims(g.x().dims(), g.integers("axes")));
}

Result<std::vector<TensorType>> InferExtremum(const OpCall& call) {
  const std::string& ties = call.text("ties");
  if (ties != "share" && ties != "first")
    return CallError(call, fmt::format("ties is \"{}\"; it must be share or first", ties));
  const std::vector<int64_t>& axes = call.integers("axes");
  if (ties == "first" && axes.size() != 1) {
    return CallError(call, fmt::format("ties is \"first\" and axes is {}; the first of several is "
                                       "defined along one axis. hint: reshape the axes to one",
                                       DimsToString(axes)));
  }
  return ReduceTypes(call, Operands::kNumber, EmptyAxis::kRefused);
}

namespace {

// 0, 1, .. along one axis of `dims`, of extent 1 elsewhere; f32 has every integer up to 2^24.
Value PlacesAlong(GraphBuilder& b, const Dims& dims, size_t axis) {
  Dims along(dims.size(), 1);
  along[axis] = dims[axis];
  Tensor places({dims[axis] <= (int64_t{1} << 24) ? DType::kF32 : DType::kF64, along});
  for (int64_t i = 0; i < dims[axis]; ++i)
    StoreFromDouble(places.type().dtype, places.mutable_data(), i, static_cast<double>(i));
  return b.Constant(std::move(places), "places");
}

Value FirstExtremumGrad(GradBuilder& g, int sign) {
  GraphBuilder& b = g.b();
  const Value x = sign < 0 ? -g.x() : g.x();
  const Dims& dims = x.dims();
  const int64_t given = g.integers("axes")[0];
  const int64_t axis = given < 0 ? given + static_cast<int64_t>(dims.size()) : given;
  const Value first = ArgMax(x, axis, /*keep_dims=*/true);
  const Value places = PlacesAlong(b, dims, static_cast<size_t>(axis));
  const Value chosen = Equal(Cast(first, places.dtype()), places);
  const Value dy = WithKeptDims(g, g.dy());
  return Where(chosen, dy, 0);
}

}  // namespace

Value ExtremumGrad(GradBuilder& g, int sign) {
  if (g.text("ties") == "first") return FirstExtremumGrad(g, sign);
  const Value x = g.x();
  const DType dtype = x.dtype();
  // bf16 counts to 256 and f16 to 2048: ties are counted, and dy is divided, in f32.
  const DType wide = BytesPerElement(dtype) < BytesPerElement(DType::kF32) ? DType::kF32 : dtype;
  const Value chosen = Equal(x, WithKeptDims(g, g.y()));
  const Value ties = Sum(Cast(chosen, wide), g.integers("axes"), /*keep_dims=*/true);
  const Value share = Cast(WithKeptDims(g, g.dy()), wide) / ties;
  const Value own = Cast(share, dtype);
  return Cast(chosen, dtype) * own;
}

AttrMap ReduceAttrs() { return {{"axes", {}}, {"keep_dims", 0}}; }

AttrMap ExtremumAttrs() {
  AttrMap attrs = ReduceAttrs();
  attrs["ties"] = "share";
  return attrs;
}

AttrMap SumAttrs() {
  AttrMap attrs = ReduceAttrs();
  attrs["out_dtype"] = "";
  return attrs;
}

}  // namespace ridge

// ONNX converters: reductions.  Those that a record of ours names need no line here.
//
// With noop_with_empty_axes and no axes nothing is summed, but what comes before and after still
// happens: ReduceSumSquare squares.  Means, roots and logarithms of integers are computed in f64
// and cast back.
#include <cmath>

#include "ridge/onnx/import/converter.h"
#include "ridge/onnx/import/converters/math.h"

namespace ridge {
namespace {

struct Reduction {
  TensorType type;            // of the input
  std::vector<int64_t> axes;  // empty: all
  bool keep_dims = true;
  bool none = false;  // over no axes at all

  Value Apply(GraphBuilder& b, const char* op, Value x, bool keep) const {
    if (none) return x;
    return b.Op(op, {x}, {{"axes", axes}, {"keep_dims", int64_t{keep}}});
  }
  Value Apply(GraphBuilder& b, const char* op, Value x) const { return Apply(b, op, x, keep_dims); }

  Dims Result() const {
    if (none) return type.dims;
    const Dims kept = KeptDims(type.dims, axes);
    if (keep_dims) return kept;
    std::vector<bool> reduced(kept.size(), axes.empty());
    for (int64_t axis : axes) reduced[static_cast<size_t>(axis)] = true;
    Dims dims;
    for (size_t d = 0; d < kept.size(); ++d) {
      if (!reduced[d]) dims.push_back(kept[d]);
    }
    return dims;
  }
};

ridge::Result<Reduction> ReadReduction(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  Reduction r;
  r.type = n.type(0);
  RIDGE_ASSIGN_OR_RETURN(r.axes, n.Axes("axes", 1, r.type.rank()));
  RIDGE_RETURN_IF_ERROR(CheckOnnxAxesOnce(n, r.axes));
  r.keep_dims = n.integer("keepdims", 1) != 0;
  r.none = r.axes.empty() && n.integer("noop_with_empty_axes", 0) != 0;
  return r;
}

// The input in a float type, f64 for integers.
Value AsFloat(OnnxNode& n, const Reduction& r) {
  return IsFloat(r.type.dtype) ? n.input(0) : n.b().Cast(n.input(0), DType::kF64);
}

Status Finish(OnnxNode& n, const Reduction& r, Value y) {
  n.Set(0, n.b().Cast(y, r.type.dtype));
  return n.status();
}

// Of no elements: the number that any other beats.  Along one axis the first of equals takes the
// gradient, as in PyTorch's max(dim); along several, or all, they share it, as in amax and max().
Status ConvertExtremum(OnnxNode& n, const char* op, double worst) {
  RIDGE_ASSIGN_OR_RETURN(const Reduction r, ReadReduction(n));
  GraphBuilder& b = n.b();
  const Dims dims = r.Result();
  const DType dtype = r.type.dtype == DType::kBool ? DType::kU8 : r.type.dtype;
  if (r.type.elements() == 0 && ElementCount(dims) > 0) {
    return Finish(n, r, OnnxFilled(b, {dtype, dims}, worst));
  }
  const Value x = b.Cast(n.input(0), dtype);
  if (r.none) return Finish(n, r, x);
  const std::string ties = r.axes.size() == 1 ? "first" : "share";
  const AttrMap attrs = {{"axes", r.axes}, {"keep_dims", int64_t{r.keep_dims}}, {"ties", ties}};
  return Finish(n, r, b.Op(op, {x}, attrs));
}

// The root with the gradient 0 at 0, where it has none.
Value SafeSqrt(GraphBuilder& b, Value x) {
  const DType dtype = b.type(x).dtype;
  const Value zero = b.Scalar(dtype, 0);
  const Value is_zero = b.Op("equal", {x, zero});
  return b.Where(is_zero, zero, b.Sqrt(b.Where(is_zero, b.Scalar(dtype, 1), x)));
}

Status ConvertReduceMax(OnnxNode& n) { return ConvertExtremum(n, "reduce_max", -INFINITY); }
Status ConvertReduceMin(OnnxNode& n) { return ConvertExtremum(n, "reduce_min", INFINITY); }

Status ConvertReduceL1(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Reduction r, ReadReduction(n));
  const bool has_sign = Tensor::Scalar(r.type.dtype, -1).at(0) < 0;
  const Value size = has_sign ? n.b().Op("abs", {n.input(0)}) : n.input(0);
  n.Set(0, r.Apply(n.b(), "reduce_sum", size));
  return n.status();
}

Status ConvertReduceL2(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Reduction r, ReadReduction(n));
  const Value squares = n.b().Op("square", {AsFloat(n, r)});
  return Finish(n, r, SafeSqrt(n.b(), r.Apply(n.b(), "reduce_sum", squares)));
}

Status ConvertReduceSumSquare(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Reduction r, ReadReduction(n));
  n.Set(0, r.Apply(n.b(), "reduce_sum", n.b().Op("square", {n.input(0)})));
  return n.status();
}

Status ConvertReduceLogSum(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Reduction r, ReadReduction(n));
  return Finish(n, r, n.b().Log(r.Apply(n.b(), "reduce_sum", AsFloat(n, r))));
}

constexpr OnnxConverter kConverters[] = {
    {"", "ReduceL1", ConvertReduceL1},         {"", "ReduceL2", ConvertReduceL2},
    {"", "ReduceLogSum", ConvertReduceLogSum}, {"", "ReduceMax", ConvertReduceMax},
    {"", "ReduceMin", ConvertReduceMin},       {"", "ReduceSumSquare", ConvertReduceSumSquare},
};

// Whether the operator is for floats only.
bool RefusesIntegers(const OpDef& op) {
  OpCall call;
  call.inputs = {{DType::kI32, {1}}};
  return !InferCall(op, call).ok();
}

}  // namespace

std::span<const OnnxConverter> OnnxReduceConverters() { return kConverters; }

Status ConvertReduction(OnnxNode& n, const OpDef& op) {
  RIDGE_ASSIGN_OR_RETURN(const Reduction r, ReadReduction(n));
  const Value x = RefusesIntegers(op) ? AsFloat(n, r) : n.input(0);
  return Finish(n, r, r.Apply(n.b(), op.name.c_str(), x));
}

}  // namespace ridge

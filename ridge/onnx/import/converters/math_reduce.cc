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

  Value Apply(const char* op, Value x, bool keep) const {
    if (none) return x;
    return Op(op, {x}, {{"axes", axes}, {"keep_dims", keep}});
  }
  Value Apply(const char* op, Value x) const { return Apply(op, x, keep_dims); }

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
  return IsFloat(r.type.dtype) ? n[0] : Cast(n[0], DType::kF64);
}

// Of no elements: the number that any other beats.  Along one axis the first of equals takes the
// gradient, as in PyTorch's max(dim); along several, or all, they share it, as in amax and max().
Result<Value> ConvertExtremum(OnnxNode& n, const char* op, double worst) {
  RIDGE_ASSIGN_OR_RETURN(const Reduction r, ReadReduction(n));
  GraphBuilder& b = n.b();
  const Dims dims = r.Result();
  const DType dtype = r.type.dtype == DType::kBool ? DType::kU8 : r.type.dtype;
  if (r.type.elements() == 0 && ElementCount(dims) > 0) {
    return Cast(OnnxFilled(b, {dtype, dims}, worst), r.type.dtype);
  }
  const Value x = Cast(n[0], dtype);
  if (r.none) return Cast(x, r.type.dtype);
  const std::string ties = r.axes.size() == 1 ? "first" : "share";
  const AttrMap attrs = {{"axes", r.axes}, {"keep_dims", r.keep_dims}, {"ties", ties}};
  return Cast(Op(op, {x}, attrs), r.type.dtype);
}

// The root with the gradient 0 at 0, where it has none.
Value SafeSqrt(GraphBuilder& b, Value x) {
  const DType dtype = x.dtype();
  const Value zero = b.Scalar(dtype, 0);
  const Value is_zero = Equal(x, zero);
  return Where(is_zero, zero, Sqrt(Where(is_zero, b.Scalar(dtype, 1), x)));
}

Result<Value> ConvertReduceMax(OnnxNode& n) { return ConvertExtremum(n, "reduce_max", -INFINITY); }
Result<Value> ConvertReduceMin(OnnxNode& n) { return ConvertExtremum(n, "reduce_min", INFINITY); }

Result<Value> ConvertReduceL1(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Reduction r, ReadReduction(n));
  const bool has_sign = Tensor::Scalar(r.type.dtype, -1).at(0) < 0;
  const Value size = has_sign ? Abs(n[0]) : n[0];
  return r.Apply("reduce_sum", size);
}

Result<Value> ConvertReduceL2(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Reduction r, ReadReduction(n));
  const Value squares = Square(AsFloat(n, r));
  return Cast(SafeSqrt(n.b(), r.Apply("reduce_sum", squares)), r.type.dtype);
}

Result<Value> ConvertReduceSumSquare(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Reduction r, ReadReduction(n));
  return r.Apply("reduce_sum", Square(n[0]));
}

Result<Value> ConvertReduceLogSum(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Reduction r, ReadReduction(n));
  return Cast(Log(r.Apply("reduce_sum", AsFloat(n, r))), r.type.dtype);
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

Result<Value> ConvertReduction(OnnxNode& n, const OpDef& op) {
  RIDGE_ASSIGN_OR_RETURN(const Reduction r, ReadReduction(n));
  const Value x = RefusesIntegers(op) ? AsFloat(n, r) : n[0];
  return Cast(r.Apply(op.name.c_str(), x), r.type.dtype);
}

}  // namespace ridge

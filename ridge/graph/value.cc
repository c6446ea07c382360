// Each function is one node, but for those that return their operand when there is nothing to do.
#include "ridge/graph/value.h"

#include <algorithm>

#include "ridge/graph/builder.h"

namespace ridge {

const TensorType& Value::type() const {
  static const TensorType kNone;
  return valid() ? builder->graph().type(id) : kNone;
}

std::vector<Value> OpOutputs(const char* op, const std::vector<Value>& inputs, AttrMap attrs,
                             const std::string& name) {
  const auto known = std::find_if(inputs.begin(), inputs.end(), [](Value v) { return v.valid(); });
  if (known != inputs.end()) return known->builder->AddOp(op, inputs, std::move(attrs), name);
  const OpDef* def = FindOp(op);
  return std::vector<Value>(def == nullptr ? 1 : def->output_names.size());
}

Value Op(const char* op, const std::vector<Value>& inputs, AttrMap attrs, const std::string& name) {
  return OpOutputs(op, inputs, std::move(attrs), name)[0];
}

namespace {

Value Unary(const char* op, Value x, AttrMap attrs = {}) {
  return x.valid() ? Op(op, {x}, std::move(attrs)) : Value();
}

Value Binary(const char* op, Value a, Value b) {
  return a.valid() && b.valid() ? Op(op, {a, b}) : Value();
}

Value Reduce(const char* op, Value x, std::vector<int64_t> axes, bool keep_dims) {
  return Unary(op, x, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
}

}  // namespace

Value ScalarLike(Value x, double value) {
  return x.valid() ? x.builder->Scalar(x.dtype(), value) : Value();
}

Value operator+(Value a, Value b) { return Binary("add", a, b); }
Value operator-(Value a, Value b) { return Binary("sub", a, b); }
Value operator*(Value a, Value b) { return Binary("mul", a, b); }
Value operator/(Value a, Value b) { return Binary("div", a, b); }
Value operator-(Value x) { return Unary("neg", x); }

Value Abs(Value x) { return Unary("abs", x); }
Value Ceil(Value x) { return Unary("ceil", x); }
Value Cos(Value x) { return Unary("cos", x); }
Value Elu(Value x, double alpha) { return Unary("elu", x, {{"alpha", alpha}}); }
Value Erf(Value x) { return Unary("erf", x); }
Value Exp(Value x) { return Unary("exp", x); }
Value Floor(Value x) { return Unary("floor", x); }
Value Gelu(Value x) { return Unary("gelu", x); }
Value Log(Value x) { return Unary("log", x); }
Value Not(Value x) { return Unary("logical_not", x); }
Value Relu(Value x) { return Unary("relu", x); }
Value Round(Value x) { return Unary("round", x); }
Value Rsqrt(Value x) { return Unary("rsqrt", x); }
Value Sigmoid(Value x) { return Unary("sigmoid", x); }
Value Sign(Value x) { return Unary("sign", x); }
Value Silu(Value x) { return Unary("silu", x); }
Value Sin(Value x) { return Unary("sin", x); }
Value Softplus(Value x) { return Unary("softplus", x); }
Value Sqrt(Value x) { return Unary("sqrt", x); }
Value Square(Value x) { return Unary("square", x); }
Value Tanh(Value x) { return Unary("tanh", x); }

Value Cast(Value x, DType to) { return x.dtype() == to ? x : Unary("cast", x, {{"to", to}}); }

Value Clip(Value x, double min, double max) {
  return Unary("clip", x, {{"min", min}, {"max", max}});
}

Value Maximum(Value a, Value b) { return Binary("maximum", a, b); }
Value Minimum(Value a, Value b) { return Binary("minimum", a, b); }
Value Pow(Value a, Value b) { return Binary("pow", a, b); }
Value And(Value a, Value b) { return Binary("logical_and", a, b); }
Value Or(Value a, Value b) { return Binary("logical_or", a, b); }
Value Equal(Value a, Value b) { return Binary("equal", a, b); }
Value NotEqual(Value a, Value b) { return Binary("not_equal", a, b); }
Value operator<(Value a, Value b) { return Binary("less", a, b); }
Value operator<=(Value a, Value b) { return Binary("less_equal", a, b); }
Value operator>(Value a, Value b) { return Binary("greater", a, b); }
Value operator>=(Value a, Value b) { return Binary("greater_equal", a, b); }

Value Where(Value condition, Value a, Value b) {
  const bool valid = condition.valid() && a.valid() && b.valid();
  return valid ? Op("where", {condition, a, b}) : Value();
}

Value Sum(Value x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce("reduce_sum", x, std::move(axes), keep_dims);
}

Value Mean(Value x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce("reduce_mean", x, std::move(axes), keep_dims);
}

Value Max(Value x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce("reduce_max", x, std::move(axes), keep_dims);
}

Value Min(Value x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce("reduce_min", x, std::move(axes), keep_dims);
}

Value ArgMax(Value x, int64_t axis, bool keep_dims) {
  return Unary("argmax", x, {{"axis", axis}, {"keep_dims", keep_dims}});
}

Value Softmax(Value x, int64_t axis) { return Unary("softmax", x, {{"axis", axis}}); }
Value LogSoftmax(Value x, int64_t axis) { return Unary("log_softmax", x, {{"axis", axis}}); }

Value MatMul(Value a, Value b, bool transpose_a, bool transpose_b) {
  if (!a.valid() || !b.valid()) return {};
  return Op("matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

Value Reshape(Value x, Dims dims) { return Unary("reshape", x, {{"dims", std::move(dims)}}); }

Value ReshapeExactly(Value x, const Dims& dims) {
  if (x.dims() == dims) return x;
  const bool has_zero = ElementCount(dims) == 0;
  return Unary("reshape", x, {{"dims", dims}, {"allow_zero", has_zero}});
}

Value Transpose(Value x, std::vector<int64_t> permutation) {
  return Unary("transpose", x, {{"permutation", std::move(permutation)}});
}

Value Expand(Value x, Dims dims) {
  return x.dims() == dims ? x : Unary("expand", x, {{"dims", std::move(dims)}});
}

Value SumTo(Value x, const Dims& dims) {
  if (!x.valid() || x.dims() == dims) return x;
  const Dims from = x.dims();
  const size_t extra = from.size() - dims.size();
  std::vector<int64_t> leading, stretched;
  for (size_t d = 0; d < from.size(); ++d) {
    if (d < extra) {
      leading.push_back(static_cast<int64_t>(d));
    } else if (dims[d - extra] == 1 && from[d] != 1) {
      stretched.push_back(static_cast<int64_t>(d - extra));
    }
  }
  if (!leading.empty()) x = Sum(x, leading);
  return stretched.empty() ? x : Sum(x, stretched, /*keep_dims=*/true);
}

Value Concat(const std::vector<Value>& parts, int64_t axis) {
  return Op("concat", parts, {{"axis", axis}});
}

Value Slice(Value x, int64_t axis, int64_t start, int64_t end) {
  return Unary("slice", x, {{"axes", {axis}}, {"starts", {start}}, {"ends", {end}}});
}

Value Slice(Value x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  return Unary("slice", x,
               {{"axes", {axis}}, {"starts", {start}}, {"ends", {end}}, {"steps", {step}}});
}

Value Gather(Value x, Value indices, int64_t axis) {
  if (!x.valid() || !indices.valid()) return {};
  return Op("gather", {x, indices}, {{"axis", axis}});
}

}  // namespace ridge

// Value: a tensor of a graph under construction.  Expressions of values append nodes:
//
//   GraphBuilder b("mlp");
//   const Value x = b.Input("x", {DType::kF32, {128, 784}});
//   const Value h = Relu(b.Linear(x, 512, "fc1"));
//   const Value variance = Mean(Square(h - Mean(h, {1}, /*keep_dims=*/true)), {1});
//
// Operands broadcast as numpy does; a number becomes a constant of the other operand's dtype.  A
// value that is invalid, because an input is absent or after an error, makes every result invalid;
// the builder keeps the first error with its place.
//
// Nodes are numbered in the order of creation, and C++ leaves the order of operands open: where two
// operands both create nodes, name them in statements of their own, or the graph depends on the
// compiler.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/attributes.h"
#include "ridge/graph/graph.h"

namespace ridge {

class GraphBuilder;

struct Value {
  Value() = default;
  Value(GraphBuilder& b, ValueId value) : id(value), builder(value == kNoValue ? nullptr : &b) {}

  ValueId id = kNoValue;
  GraphBuilder* builder = nullptr;  // outlives the value; nullptr when invalid

  bool valid() const { return id != kNoValue; }
  const TensorType& type() const;  // f32[] when invalid
  const Dims& dims() const { return type().dims; }
  DType dtype() const { return type().dtype; }
  int rank() const { return type().rank(); }

  bool operator==(const Value&) const = default;  // the same value; elements: Equal(a, b)
};

// A node of any operator, by the operator's name.  Absent optional inputs are invalid values; one
// input at least is valid, or the result is invalid.  `name` names the first output; empty: the
// operator's name.
Value Op(const char* op, const std::vector<Value>& inputs, AttrMap attrs = {},
         const std::string& name = "");
std::vector<Value> OpOutputs(const char* op, const std::vector<Value>& inputs, AttrMap attrs = {},
                             const std::string& name = "");

// A constant of rank 0 and x's dtype.
Value ScalarLike(Value x, double value);

Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator-(Value x);
inline Value operator+(Value a, double b) { return a + ScalarLike(a, b); }
inline Value operator-(Value a, double b) { return a - ScalarLike(a, b); }
inline Value operator*(Value a, double b) { return a * ScalarLike(a, b); }
inline Value operator/(Value a, double b) { return a / ScalarLike(a, b); }
inline Value operator-(double a, Value b) { return ScalarLike(b, a) - b; }
inline Value operator/(double a, Value b) { return ScalarLike(b, a) / b; }

// Of each element.
Value Abs(Value x);
Value Ceil(Value x);
Value Cos(Value x);
Value Elu(Value x, double alpha = 1);
Value Erf(Value x);
Value Exp(Value x);
Value Floor(Value x);
Value Gelu(Value x);
Value Log(Value x);
Value Not(Value x);
Value Relu(Value x);
Value Round(Value x);  // halves to even
Value Rsqrt(Value x);
Value Sigmoid(Value x);
Value Sign(Value x);
Value Silu(Value x);
Value Sin(Value x);
Value Softplus(Value x);
Value Sqrt(Value x);
Value Square(Value x);
Value Tanh(Value x);
Value Cast(Value x, DType to);  // x itself when it has that dtype
Value Clip(Value x, double min, double max);

// Of pairs of elements; those in the second row are bool.
Value Maximum(Value a, Value b);
Value Minimum(Value a, Value b);
Value Pow(Value a, Value b);
Value And(Value a, Value b);
Value Or(Value a, Value b);
Value Equal(Value a, Value b);
Value NotEqual(Value a, Value b);
Value operator<(Value a, Value b);
Value operator<=(Value a, Value b);
Value operator>(Value a, Value b);
Value operator>=(Value a, Value b);
inline Value Equal(Value a, double b) { return Equal(a, ScalarLike(a, b)); }
inline Value NotEqual(Value a, double b) { return NotEqual(a, ScalarLike(a, b)); }
inline Value operator<(Value a, double b) { return a < ScalarLike(a, b); }
inline Value operator<=(Value a, double b) { return a <= ScalarLike(a, b); }
inline Value operator>(Value a, double b) { return a > ScalarLike(a, b); }
inline Value operator>=(Value a, double b) { return a >= ScalarLike(a, b); }
Value Where(Value condition, Value a, Value b);
inline Value Where(Value condition, Value a, double b) {
  return Where(condition, a, ScalarLike(a, b));
}

// Over `axes`, negative ones counted from the end; empty: all.  Reduced dimensions are dropped, or
// stay with extent 1.
Value Sum(Value x, std::vector<int64_t> axes = {}, bool keep_dims = false);
Value Mean(Value x, std::vector<int64_t> axes = {}, bool keep_dims = false);
Value Max(Value x, std::vector<int64_t> axes = {}, bool keep_dims = false);
Value Min(Value x, std::vector<int64_t> axes = {}, bool keep_dims = false);
Value ArgMax(Value x, int64_t axis, bool keep_dims = false);
Value Softmax(Value x, int64_t axis = -1);
Value LogSoftmax(Value x, int64_t axis = -1);

Value MatMul(Value a, Value b, bool transpose_a = false, bool transpose_b = false);

// One extent may be -1, which is inferred; 0 copies the extent of x at the same position.
Value Reshape(Value x, Dims dims);
// The same, but -1 and 0 have no such meaning: x itself when it has these dims.
Value ReshapeExactly(Value x, const Dims& dims);
Value Transpose(Value x, std::vector<int64_t> permutation);
Value Expand(Value x, Dims dims);  // x broadcast to dims; x itself when it has them
// Sums x over the axes along which `dims` is broadcast to x's shape: the gradient of Expand.
Value SumTo(Value x, const Dims& dims);
Value Concat(const std::vector<Value>& parts, int64_t axis);
// [start, end) along one axis; the second writes the attribute `steps`.
Value Slice(Value x, int64_t axis, int64_t start, int64_t end);
Value Slice(Value x, int64_t axis, int64_t start, int64_t end, int64_t step);
Value Gather(Value x, Value indices, int64_t axis = 0);  // x's entries along an axis

}  // namespace ridge

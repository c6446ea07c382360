// PointwiseRow: all that is to be said of a pointwise operator, as a row of its family's table.
//
//   constexpr PointwiseRow kRows[] = {
//       Unary("sin", "y = sin(x), x in radians.", {"Sin", 7, 22}, Operands::kFloat, 1,
//             [](double x) { return std::sin(x); },
//             [](UnaryGrad& g) { return g.dy * Cos(g.x); }),
//   };
//   std::vector<OpDef> TrigonometryOps() { return OpsOf(kRows); }
//
// That is: name, doc, ONNX's operator, dtypes, flops of an element, function, gradient.  The output
// may overwrite any input, and is cheap to recompute.
#pragma once
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {

struct NumberAttr {
  const char* name = nullptr;
  double value = 0;
};

struct PointwiseRow {
  using Types = Result<std::vector<TensorType>>(const OpCall&);
  using Function = double(std::span<const double>, const AttrMap&);
  using Gradient = void(GradBuilder&);
  using Pattern = PatternMatch(const Graph&, const Node&);

  const char* name = nullptr;
  const char* doc = nullptr;
  OnnxOp onnx = {};
  Types* types = nullptr;
  int flops = 0;
  Function* function = nullptr;
  Gradient* gradient = nullptr;        // nullptr: not differentiable
  const char* inputs[2] = {"a", "b"};  // the second is nullptr when there is one
  const char* output = "y";
  bool in_place = true;
  int no_gradient_input = -1;
  Linear linear = Linear::kNo;
  NumberAttr attrs[2] = {};
  Pattern* pattern = nullptr;

  // The same with other names for a, b and y.
  constexpr PointwiseRow Named(const char* first, const char* second, const char* result) const {
    PointwiseRow row = *this;
    row.inputs[0] = first;
    row.inputs[1] = second;
    row.output = result;
    return row;
  }
  // The same with an attribute and its default.
  constexpr PointwiseRow With(const char* attr, double value) const {
    PointwiseRow row = *this;
    row.attrs[row.attrs[0].name == nullptr ? 0 : 1] = {attr, value};
    return row;
  }
  constexpr PointwiseRow LinearBy(Linear how) const {
    PointwiseRow row = *this;
    row.linear = how;
    return row;
  }
  constexpr PointwiseRow FoundBy(Pattern* match) const {
    PointwiseRow row = *this;
    row.pattern = match;
    return row;
  }
  constexpr PointwiseRow NoGradientOf(int input) const {
    PointwiseRow row = *this;
    row.no_gradient_input = input;
    return row;
  }
};

// The operators of a family, in the order of its rows.
std::vector<OpDef> OpsOf(std::span<const PointwiseRow> rows);

// What the gradient of a function of x is made of; it returns dx.
struct UnaryGrad {
  Value x, y, dy;
};

// Functions are [](double x) and [](double a, double b), or have the attributes behind x.
template <class F>
constexpr PointwiseRow::Function* FunctionOf(F) {
  return [](std::span<const double> v, const AttrMap& attrs) -> double {
    if constexpr (std::is_invocable_v<F, double>) {
      return F{}(v[0]);
    } else if constexpr (std::is_invocable_v<F, double, const AttrMap&>) {
      return F{}(v[0], attrs);
    } else {
      return F{}(v[0], v[1]);
    }
  };
}

// Gradients are [](UnaryGrad& g) { return dx; }, functions of GradBuilder, or nullptr.
constexpr PointwiseRow::Gradient* GradientOf(PointwiseRow::Gradient* gradient) { return gradient; }
template <class F>
requires std::is_invocable_r_v<Value, F, UnaryGrad&>
constexpr PointwiseRow::Gradient* GradientOf(F) {
  return [](GradBuilder& g) {
    UnaryGrad one{g.x(), g.y(), g.dy()};
    g.dx() = F{}(one);
  };
}

constexpr PointwiseRow::Types* PointwiseTypesOf(Operands operands) {
  switch (operands) {
    case Operands::kFloat:
      return InferPointwise<Operands::kFloat>;
    case Operands::kSigned:
      return InferPointwise<Operands::kSigned>;
    case Operands::kNumber:
      return InferPointwise<Operands::kNumber>;
    case Operands::kBool:
      return InferPointwise<Operands::kBool>;
    case Operands::kAny:
      break;
  }
  return InferPointwise<Operands::kAny>;
}

template <class F, class G>
constexpr PointwiseRow Binary(const char* name, const char* doc, OnnxOp onnx, Operands operands,
                              int flops, F function, G gradient) {
  PointwiseRow row;
  row.name = name;
  row.doc = doc;
  row.onnx = onnx;
  row.types = PointwiseTypesOf(operands);
  row.flops = flops;
  row.function = FunctionOf(function);
  row.gradient = GradientOf(gradient);
  return row;
}

template <class F, class G>
constexpr PointwiseRow Unary(const char* name, const char* doc, OnnxOp onnx, Operands operands,
                             int flops, F function, G gradient) {
  return Binary(name, doc, onnx, operands, flops, function, gradient).Named("x", nullptr, "y");
}

}  // namespace ridge

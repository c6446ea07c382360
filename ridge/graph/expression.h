// Expression: the program that a `fused` node runs for each element of its outputs.
//
//   "t0=add(i0,i1);t1=clip(t0,min=0.0,max=6.0);o0=t1;o1=t0"
//
// i0, i1, ... are the node's inputs, t0, t1, ... the steps in order, o0, o1, ... the outputs, each
// one step.  A step is a pointwise operator (one with OpDef::elementwise) on inputs and earlier
// steps, with the attributes that differ from their defaults.  All inputs are broadcast to one
// shape, which is the shape of every output.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/graph/op_def.h"

namespace ridge {

inline constexpr size_t kMostExpressionInputs = 16;
inline constexpr size_t kMostExpressionOutputs = 8;
inline constexpr size_t kMostExpressionSteps = 32;

// An input of the node (i3) or the result of a step (t3).
struct ExpressionOperand {
  bool is_step = false;
  int32_t index = 0;
  bool operator==(const ExpressionOperand&) const = default;
};

struct ExpressionStep {
  const OpDef* op = nullptr;
  AttrMap attrs;  // complete: defaults filled in
  std::vector<ExpressionOperand> operands;
};

struct Expression {
  size_t inputs = 0;  // one more than the largest input named
  std::vector<ExpressionStep> steps;
  std::vector<int32_t> outputs;  // the step of each output
};

// The types of a node's steps, each of the full shape.
struct ExpressionTypes {
  Dims dims;                 // what the inputs broadcast to
  std::vector<DType> steps;  // one for each step
};

// The expression of a pointwise operator or of `fused`.
Result<Expression> ExpressionOf(const OpDef& op, const OpCall& call);

std::string PrintExpression(const Expression& expression);

// Fails with kInvalidModel; the message has the place, the text found and the text expected.
Result<Expression> ParseExpression(std::string_view text);

// `where` begins messages.  Fails unless the expression names every input.
Result<ExpressionTypes> InferExpression(const Expression& expression,
                                        std::span<const TensorType> inputs,
                                        const std::string& where);

// One element: `inputs` are its operands; `values` receives every step's result, rounded to the
// step's dtype, as if the steps were separate nodes.
void EvaluateExpression(const Expression& expression, const ExpressionTypes& types,
                        std::span<const double> inputs, std::span<double> values);

}  // namespace ridge

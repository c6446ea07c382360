// fused: several pointwise operators as one node; intermediate values never reach memory.
//
// Made by the fuse pass; the attribute `expr` holds the steps (ridge/graph/expression.h).  Each
// step is rounded to its own dtype, so the result is that of the separate nodes, bit for bit.
#include <algorithm>

#include "ridge/graph/axes.h"
#include "ridge/graph/expression.h"

namespace ridge {
namespace {

// x...: any shapes that broadcast.  y0, y1, ...: the broadcast shape; dtypes by the steps.
Result<std::vector<TensorType>> InferTypes(const OpCall& call) {
  Result<Expression> expression = ParseExpression(call.text("expr"));
  if (!expression.ok()) return CallError(call, expression.status().message());
  RIDGE_ASSIGN_OR_RETURN(const ExpressionTypes types,
                         InferExpression(*expression, call.inputs, call.where));
  std::vector<TensorType> outputs;
  for (int32_t step : expression->outputs) {
    outputs.push_back({types.steps[static_cast<size_t>(step)], types.dims});
  }
  return outputs;
}

// The steps' arithmetic; inputs are read once and outputs written once.
// REQUIRES: InferTypes() passed.
Cost EstimateCost(const OpCall& call) {
  const Result<Expression> expression = ParseExpression(call.text("expr"));
  const Result<ExpressionTypes> types = InferExpression(*expression, call.inputs, call.where);
  Cost cost;
  for (size_t i = 0; i < expression->steps.size(); ++i) {
    const ExpressionStep& step = expression->steps[i];
    OpCall one{call.where, {}, {{types->steps[i], types->dims}}, step.attrs};
    for (const ExpressionOperand& operand : step.operands) {
      const auto k = static_cast<size_t>(operand.index);
      one.inputs.push_back({operand.is_step ? types->steps[k] : call.inputs[k].dtype, types->dims});
    }
    cost.flops += CallCost(*step.op, one).flops;
  }
  for (const TensorType& type : call.inputs) cost.bytes_read += type.bytes();
  for (const TensorType& type : call.outputs) cost.bytes_written += type.bytes();
  return cost;
}

// For each dimension of the output, how far the input moves on; 0 where it is broadcast.
Dims BroadcastStrides(const Dims& input, const Dims& output) {
  const Dims own = RowMajorStrides(input);
  Dims strides(output.size(), 0);
  const size_t offset = output.size() - input.size();
  for (size_t d = 0; d < input.size(); ++d) {
    if (input[d] != 1) strides[offset + d] = own[d];
  }
  return strides;
}

int64_t BroadcastIndex(int64_t index, const Dims& dims, const Dims& strides) {
  int64_t at = 0;
  for (size_t d = dims.size(); d-- > 0; index /= dims[d]) at += index % dims[d] * strides[d];
  return at;
}

void Reference(const OpCall& call, std::span<const double* const> in,
               std::span<double* const> out) {
  const Result<Expression> expression = ParseExpression(call.text("expr"));
  const Result<ExpressionTypes> types = InferExpression(*expression, call.inputs, call.where);
  std::vector<Dims> strides;
  for (const TensorType& type : call.inputs) {
    strides.push_back(BroadcastStrides(type.dims, types->dims));
  }
  std::vector<double> args(in.size()), values(expression->steps.size());
  const int64_t count = ElementCount(types->dims);
  for (int64_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < in.size(); ++k) {
      args[k] = in[k][BroadcastIndex(i, types->dims, strides[k])];
    }
    EvaluateExpression(*expression, *types, args, values);
    for (size_t k = 0; k < out.size(); ++k) {
      out[k][i] = values[static_cast<size_t>(expression->outputs[k])];
    }
  }
}

// An element is written after all inputs' elements at its place were read, so any output may
// overwrite any input of its type.
std::vector<std::pair<int, int>> InPlacePairs() {
  std::vector<std::pair<int, int>> pairs;
  for (int output = 0; output < static_cast<int>(kMostExpressionOutputs); ++output) {
    for (int input = 0; input < static_cast<int>(kMostExpressionInputs); ++input) {
      pairs.emplace_back(output, input);
    }
  }
  return pairs;
}

}  // namespace

OpDef FusedDef() {
  return {
      .name = "fused",
      .doc =
          "Pointwise steps on broadcast inputs, such as expr=\"t0=add(i0,i1);t1=relu(t0);o0=t1\". "
          "Made by the fuse pass, after differentiation.",
      .input_names = {"x..."},
      .output_names = {"y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7"},
      .attr_defaults = {{"expr", ""}},
      .required_attrs = {"expr"},
      .cost_class = CostClass::kElementwise,
      .infer_types = InferTypes,
      .cost = EstimateCost,
      .in_place = InPlacePairs(),
      .recompute = Recompute::kCheap,
      .shared_axes = PointwiseAxes,
      .reference = Reference,
  };
}

}  // namespace ridge

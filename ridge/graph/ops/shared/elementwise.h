// What the pointwise operators share: type rules, cost, and gradients through broadcasting.
//
// A pointwise operator computes each output element from one element of each input; inputs are
// broadcast as numpy does.  All inputs have one dtype, which is also the output's (bool for
// comparisons).  Results are rounded to the output's dtype: integers truncate toward zero and
// saturate, so i8: 100 + 100 = 127 and 7 / 0 is the largest integer.  64-bit integers are exact up
// to 2^53.
#pragma once
#include "ridge/graph/grad_builder.h"

namespace ridge {

// Which dtypes an operator takes.
enum class Operands { kFloat, kSigned, kNumber, kBool, kAny };

// Fails when `type` is not one of them; `name` is the input's name in the message.
Status CheckOperand(const OpCall& call, const std::string& name, const TensorType& type,
                    Operands operands);

// The dims that inputs [first, end) broadcast to; fails when they do not.
Result<Dims> BroadcastInputs(const OpCall& call, size_t first = 0);

// All inputs have one dtype of `operands`; the output has it too, or bool when `to_bool`.
Result<std::vector<TensorType>> PointwiseTypes(const OpCall& call, Operands operands, bool to_bool);

template <Operands kOperands>
Result<std::vector<TensorType>> InferPointwise(const OpCall& call) {
  return PointwiseTypes(call, kOperands, /*to_bool=*/false);
}

template <Operands kOperands>
Result<std::vector<TensorType>> InferPredicate(const OpCall& call) {
  return PointwiseTypes(call, kOperands, /*to_bool=*/true);
}

// `flops` an output element; every input is read once.  A named function (exp, erf) counts as 1.
Cost CostPerElement(const OpCall& call, int64_t flops);

template <int64_t kFlops>
Cost PointwiseCost(const OpCall& call) {
  return CostPerElement(call, kFlops);
}

// For functions that are constant almost everywhere: nothing flows.
inline void ZeroGradient(GradBuilder&) {}

}  // namespace ridge

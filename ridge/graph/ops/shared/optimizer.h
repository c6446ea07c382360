// What the optimizer updates share.
#pragma once
#include <utility>
#include <vector>

#include "ridge/graph/op_def.h"

namespace ridge {

// Inputs 0 and 1 are param, float, and grad, of the same type; input `lr` is a float scalar.
Status CheckParamAndGrad(const OpCall& call, size_t lr);

// With a loss scale (learn/loss_scale.h), the inputs from `apply` on: `apply`, bool[], false leaves
// parameter and moments as they are; and the number that gradients are multiplied by, f32[] or
// f64[].
inline constexpr size_t kAdamApply = 9, kSgdApply = 6;
Status CheckApply(const OpCall& call, size_t apply);
double GradScale(const OpCall& call, size_t apply, std::span<const double* const> in);
// Where `apply` is false, copies the inputs of `kept` (output, input) to their outputs, bit by bit.
bool KeepsValues(const OpCall& call, size_t apply, const std::vector<std::pair<int, int>>& kept,
                 std::span<const double* const> in, std::span<double* const> out);

// Every input is read once and every output written once.
Cost OptimizerCost(const OpCall& call, int64_t flops_per_element);

}  // namespace ridge

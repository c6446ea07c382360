// The moments of optimizers, in the form of `--optimizer-state`.
//
//   f32   the parameter's type
//   bf16  rounded at random (graph/ops/shared/moments.h)
//   8bit  dynamic codes in blocks (graph/ops/shared/dynamic_code.h)
//
// The forms are for parameters of f32.  As in bitsandbytes, 8 bits are not for parameters of fewer
// than 4096 elements, where there is little to save (min_8bit_size), and not for tables of
// embeddings, whose rows have gradients of very different size (Dettmers et al., section 2.3).
#pragma once
#include <string>
#include <vector>

#include "ridge/learn/optimizers/optimizer.h"

namespace ridge {

// Whether the parameter is read by index.
bool IsTable(const Graph& graph, ValueId param);

// Of a parameter of `forward`, which has its readers.
MomentForm FormOfMoments(const OptimizerOptions& options, const Graph& forward, ValueId param);

// A state PARAM.suffix, initially 0, and of codes PARAM.suffix_absmax.
struct Moment {
  Value state, absmax;
};
Moment AddMoment(GraphBuilder& b, Value param, const std::string& suffix, MomentForm form);

// Appends what an update named `node` reads for the form of its moments, and the stream of their
// rounding, a hash of that name.  REQUIRES: `arguments` end where the operator's `rng?` stands.
void AddForm(const UpdateInputs& inputs, const std::string& node,
             const std::vector<Moment>& moments, std::vector<Value>& arguments, AttrMap& attrs);

// Appends inputs.apply and inputs.grad_scale, where apply is given, as operands `at` and the next.
// REQUIRES: no more than `at` before them.
void AddApply(const UpdateInputs& inputs, size_t at, std::vector<Value>& arguments);

// `updated`: the outputs of the update: the parameter, the moments, the absmax of each.
void UpdateMoments(GraphBuilder& b, const std::vector<Moment>& moments,
                   const std::vector<Value>& updated);

}  // namespace ridge

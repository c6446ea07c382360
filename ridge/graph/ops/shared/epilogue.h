// The epilogue of matmul and conv: pointwise steps on the result while it is still in cache.
//
// Attribute `epilogue`: comma-separated steps, applied to the output in order.  A step is the name
// of a pointwise operator of one input with its default attributes ("relu", "gelu"), or "add",
// which adds the next extra input.  Extra inputs follow the regular ones and have exactly the
// output's type.  Made by the fuse pass after differentiation; a call with an epilogue has no
// gradient.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/axes.h"
#include "ridge/graph/grad_builder.h"

namespace ridge {

struct EpilogueStep {
  const OpDef* op;  // "add", or a pointwise operator of one input
  AttrMap attrs;    // the operator's defaults
  int extra = -1;   // "add": which extra input
};

// Fails when a step is not known or can't be one; `where` starts the message.
Result<std::vector<EpilogueStep>> ParseEpilogue(const std::string& text, const std::string& where);

// Whether this operator may be a step.
bool IsEpilogueStep(const OpDef& op);

// For infer_types: the steps are known, keep the type, and each extra input is used and of type
// `out`.
Status CheckEpilogue(const OpCall& call, size_t first_extra_input, const TensorType& out);

// For reference: applies the steps to `out`, which holds the plain result.  The value is rounded to
// the output's dtype before each step, so the reference gives the bits of the separate nodes.
// REQUIRES: CheckEpilogue() passed.
void ApplyEpilogue(const OpCall& call, std::span<const double* const> in, size_t first_extra_input,
                   double* out);

// For cost: flops of all steps on `out`.
int64_t EpilogueFlops(const OpCall& call, const TensorType& out);

// For axes: dimension 0 of input 0, of the extra inputs and of the output.
Axes FirstAxisWithExtras(const OpCall& call, size_t first_extra_input);

// For gradient: fails the builder and returns true when the node has an epilogue.
bool RefusesEpilogueGradient(GradBuilder& g, const char* op_name);

}  // namespace ridge

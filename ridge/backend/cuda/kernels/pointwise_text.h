// What pointwise operators compute, as texts: for their own kernel and for epilogues of others.
#pragma once
#include <optional>
#include <string>

#include "ridge/graph/op_def.h"

namespace ridge::cuda {

// Defines R, the type to compute in ("float" or "double"), and the functions that values use.
std::string PointwiseFunctions(const std::string& compute);

// The value of the operator as an expression of its operands a, b and c, of type R; nullopt: there
// is none for these attributes.
std::optional<std::string> PointwiseValue(const OpDef& op, const AttrMap& attrs);

}  // namespace ridge::cuda

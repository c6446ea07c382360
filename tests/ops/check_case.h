// Checks of one case of an operator on the reference.  Each returns "" or what is wrong.
#pragma once
#include <string>

#include "ridge/graph/op_def.h"
#include "tests/ops/case_file.h"

namespace ridge {

// kError: the call is refused with the expected text.
std::string CheckError(const OpDef& op, const OpCase& op_case);

// kValue: the outputs are the expected ones, to 1e-12 relative or the dtype's rounding.
std::string CheckValues(const OpDef& op, const OpCase& op_case);

// kCase: the result in the declared dtypes is the f64 result on the same inputs, rounded; types of
// outputs agree, and the cost has no negative number.
std::string CheckRounding(const OpDef& op, const OpCase& op_case);

// kCase: gradients of sum(output * fixed random weights) against central differences in f64:
// relative error at most 1e-6, at single elements and along random directions through all of them.
// The step is 8e-6: should a draw lie that close to a kink (0 of relu), take another shape.
std::string CheckGradients(const OpDef& op, const OpCase& op_case);

}  // namespace ridge

// Checks of one case of an operator on a backend, against the reference.
#pragma once
#include <string>
#include <vector>

#include "ridge/backend/backend.h"
#include "tests/ops/case_file.h"

namespace ridge {

// The inputs of which CheckBackend has layout `blocked`.
std::vector<LayoutId> AvailableLayouts(const OpCall& call, LayoutId blocked);

// Every kernel that `backend` offers for the case (in the declared dtypes; inputs row-major, and
// again with inputs of four dimensions in the blocked layout `blocked`, 0 for none):
//   agrees with the reference within `tolerance` of each output's largest element; outputs other
//     than floats are equal,
//   writes every element (outputs start as NaN) and nothing around outputs and workspace,
//   gives the same bits when it runs again, and when an output shares an input's memory.
// Returns "" or what is wrong.  `fast` counts kernels that are not the reference.
std::string CheckBackend(Backend& backend, const OpDef& op, const OpCase& op_case, LayoutId blocked,
                         double tolerance, int& fast);

}  // namespace ridge

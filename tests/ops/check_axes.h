// The axes in an operator's record against its reference.
#pragma once
#include <string>

#include "ridge/graph/op_def.h"
#include "tests/ops/case_file.h"

namespace ridge {

// kCase and kValue: returns "" or what is wrong.
//   - Each factor (axes.h): the parts of the call give the parts of each output bit for bit, or sum
//     up to them, at two and three parts where all extents divide.
//   - CallForRows: the first and the last rows along each dimension have the bits of the whole.
std::string CheckAxes(const OpDef& op, const OpCase& op_case);

}  // namespace ridge

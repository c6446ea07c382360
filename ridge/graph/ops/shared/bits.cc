#include "ridge/graph/ops/shared/bits.h"

#include <fmt/format.h>

namespace ridge {

Result<std::vector<TensorType>> InferBits(const OpCall& call) {
  const TensorType& a = call.inputs[0];
  if (!IsInteger(a.dtype)) {
    return CallError(call,
                     fmt::format("input 0 is {}; its dtype must be an integer. hint: use cast",
                                 TypeToString(a)));
  }
  return PointwiseTypes(call, Operands::kNumber, /*to_bool=*/false);
}

}  // namespace ridge

#include "ridge/graph/ops/shared/scan.h"

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {

AttrMap ScanAttrs() { return {{"axis", 0}, {"exclusive", 0}, {"reverse", 0}}; }

Result<std::vector<TensorType>> InferScan(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckOperand(call, "x", call.inputs[0], Operands::kNumber));
  RIDGE_RETURN_IF_ERROR(CheckAxis(call, "x").status());
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "exclusive"));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "reverse"));
  return std::vector<TensorType>{call.inputs[0]};
}

Cost ScanCost(const OpCall& call) {
  return {.flops = call.inputs[0].elements(),
          .bytes_read = call.inputs[0].bytes(),
          .bytes_written = call.outputs[0].bytes()};
}

ScanLines::ScanLines(const OpCall& call)
    : view_(ViewAxis(call.inputs[0].dims, CallAxis(call))),
      exclusive_(call.integer("exclusive") != 0),
      reverse_(call.integer("reverse") != 0) {}

}  // namespace ridge

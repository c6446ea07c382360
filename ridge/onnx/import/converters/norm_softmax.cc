// ONNX converters: Softmax and LogSoftmax.
//
// Before opset 13 they worked on x flattened to two dimensions at `axis` (default 1); since then on
// that one axis (default the last).
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/import/converters/norm.h"

namespace ridge {
namespace {

Result<Value> Convert(OnnxNode& n, const char* op) {
  const bool flattens = n.opset() < 13;
  RIDGE_RETURN_IF_ERROR(NeedFloat(n, 1));
  const Value x = n[0];
  if (!n.ok()) return n.status();
  const TensorType type = x.type();
  // The old default, axis 1, does not exist in rank 1: the only axis is meant.
  const int64_t fallback = flattens && type.rank() > 1 ? 1 : -1;
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.integer("axis", fallback), type.rank()));
  if (!flattens || axis == type.rank() - 1 || type.elements() == 0) {
    return Op(op, {x}, {{"axis", axis}});
  }
  const AxisView view = ViewTrailing(type.dims, static_cast<int>(axis));
  const Value flat = ReshapeExactly(x, {view.outer, view.extent});
  return ReshapeExactly(Op(op, {flat}, {{"axis", 1}}), type.dims);
}

}  // namespace

Result<Value> ConvertSoftmax(OnnxNode& n) { return Convert(n, "softmax"); }
Result<Value> ConvertLogSoftmax(OnnxNode& n) { return Convert(n, "log_softmax"); }

}  // namespace ridge

// ONNX converters: Softmax and LogSoftmax.
//
// Before opset 13 they worked on x flattened to two dimensions at `axis` (default 1); since then on
// that one axis (default the last).
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/import/converters/norm.h"

namespace ridge {
namespace {

Status Convert(OnnxNode& n, const char* op) {
  const bool flattens = n.opset() < 13;
  RIDGE_RETURN_IF_ERROR(NeedFloat(n, 1));
  GraphBuilder& b = n.b();
  const Value x = n.input(0);
  if (!n.ok()) return n.status();
  const TensorType type = b.type(x);
  // The old default, axis 1, does not exist in rank 1: the only axis is meant.
  const int64_t fallback = flattens && type.rank() > 1 ? 1 : -1;
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.integer("axis", fallback), type.rank()));
  if (!flattens || axis == type.rank() - 1 || type.elements() == 0) {
    n.Set(0, b.Op(op, {x}, {{"axis", axis}}));
    return n.status();
  }
  const AxisView view = ViewTrailing(type.dims, static_cast<int>(axis));
  const Value flat = ReshapeExactly(b, x, {view.outer, view.extent});
  n.Set(0, ReshapeExactly(b, b.Op(op, {flat}, {{"axis", int64_t{1}}}), type.dims));
  return n.status();
}

}  // namespace

Status ConvertSoftmax(OnnxNode& n) { return Convert(n, "softmax"); }
Status ConvertLogSoftmax(OnnxNode& n) { return Convert(n, "log_softmax"); }

}  // namespace ridge

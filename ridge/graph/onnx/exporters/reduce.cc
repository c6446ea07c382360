// ONNX exporters: sums and the like along axes.
#include "ridge/graph/onnx/exporter.h"

namespace ridge {
namespace {

// Axes are an input since opset 13 (ReduceSum) or 18 (the others), an attribute before.
Status WriteReduce(OnnxNodeWriter& n, const char* op_type, int64_t axes_are_input) {
  AttrMap attrs = {{"keepdims", n.integer("keep_dims")}};
  std::vector<std::string> inputs = {n.in(0)};
  const std::vector<int64_t>& axes = n.integers("axes");
  if (!axes.empty() && n.opset() >= axes_are_input) inputs.push_back(n.Ints(axes));
  if (!axes.empty() && n.opset() < axes_are_input) attrs["axes"] = axes;
  n.Emit(op_type, inputs, attrs);
  return Status();
}

Status WriteSum(OnnxNodeWriter& n) { return WriteReduce(n, "ReduceSum", 13); }
Status WriteMean(OnnxNodeWriter& n) { return WriteReduce(n, "ReduceMean", 18); }
Status WriteMax(OnnxNodeWriter& n) { return WriteReduce(n, "ReduceMax", 18); }
Status WriteMin(OnnxNodeWriter& n) { return WriteReduce(n, "ReduceMin", 18); }
Status WriteProd(OnnxNodeWriter& n) { return WriteReduce(n, "ReduceProd", 18); }

Status WriteArg(OnnxNodeWriter& n, const char* op_type) {
  n.Emit(op_type, {n.in(0)}, {{"axis", n.integer("axis")}, {"keepdims", n.integer("keep_dims")}});
  return Status();
}

Status WriteArgMax(OnnxNodeWriter& n) { return WriteArg(n, "ArgMax"); }
Status WriteArgMin(OnnxNodeWriter& n) { return WriteArg(n, "ArgMin"); }

Status WriteCumSum(OnnxNodeWriter& n) {
  n.Emit("CumSum", {n.in(0), n.Scalar(DType::kI64, static_cast<double>(n.integer("axis")))},
         {{"exclusive", n.integer("exclusive")}, {"reverse", n.integer("reverse")}});
  return Status();
}

constexpr OnnxExporter kTable[] = {
    {"argmax", 12, nullptr, WriteArgMax},    {"argmin", 12, nullptr, WriteArgMin},
    {"cumsum", 11, nullptr, WriteCumSum},    {"reduce_max", 12, nullptr, WriteMax},
    {"reduce_mean", 11, nullptr, WriteMean}, {"reduce_min", 12, nullptr, WriteMin},
    {"reduce_prod", 11, nullptr, WriteProd}, {"reduce_sum", 11, nullptr, WriteSum},
};

}  // namespace

std::span<const OnnxExporter> OnnxReduceExporters() { return kTable; }

}  // namespace ridge

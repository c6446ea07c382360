// ONNX exporters: sums and the like along axes.
#include "ridge/onnx/export/exporter.h"

namespace ridge {
namespace {

// Axes are an input since opset 13 (ReduceSum) or 18 (the others), an attribute before, and not
// negative below 11.
Status WriteReduce(OnnxNodeWriter& n, const char* op_type, int64_t axes_are_input) {
  AttrMap attrs = {{"keepdims", n.integer("keep_dims")}};
  const DType dtype = n.ComputeInWidest();
  std::vector<std::string> inputs = {n.As(0, dtype)};
  std::vector<int64_t> axes = n.integers("axes");
  for (int64_t& axis : axes) axis += axis < 0 ? n.type(0).rank() : 0;
  if (!axes.empty() && n.opset() >= axes_are_input) inputs.push_back(n.Ints(axes));
  if (!axes.empty() && n.opset() < axes_are_input) attrs["axes"] = axes;
  n.EmitRounded(op_type, inputs, attrs, dtype);
  return Status();
}

Status WriteSum(OnnxNodeWriter& n) { return WriteReduce(n, "ReduceSum", 13); }
Status WriteMean(OnnxNodeWriter& n) { return WriteReduce(n, "ReduceMean", 18); }
Status WriteMax(OnnxNodeWriter& n) { return WriteReduce(n, "ReduceMax", 18); }
Status WriteMin(OnnxNodeWriter& n) { return WriteReduce(n, "ReduceMin", 18); }
Status WriteProd(OnnxNodeWriter& n) { return WriteReduce(n, "ReduceProd", 18); }

Status WriteArgMax(OnnxNodeWriter& n) {
  n.Emit("ArgMax", {n.in(0)},
         {{"axis", n.axis("axis", n.type(0).rank())}, {"keepdims", n.integer("keep_dims")}});
  return Status();
}

Status WriteScan(OnnxNodeWriter& n, const char* op_type) {
  n.Emit(op_type, {n.in(0), n.Scalar(DType::kI64, static_cast<double>(n.integer("axis")))},
         {{"exclusive", n.integer("exclusive")}, {"reverse", n.integer("reverse")}});
  return Status();
}

Status WriteCumSum(OnnxNodeWriter& n) { return WriteScan(n, "CumSum"); }
Status WriteCumProd(OnnxNodeWriter& n) { return WriteScan(n, "CumProd"); }

constexpr OnnxExporter kTable[] = {
    {"argmax", WriteArgMax},    {"cumprod", WriteCumProd},  {"cumsum", WriteCumSum},
    {"reduce_max", WriteMax},   {"reduce_mean", WriteMean}, {"reduce_min", WriteMin},
    {"reduce_prod", WriteProd}, {"reduce_sum", WriteSum},
};

}  // namespace

std::span<const OnnxExporter> OnnxReduceExporters() { return kTable; }

}  // namespace ridge

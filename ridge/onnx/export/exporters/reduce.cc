// ONNX exporters: scans and places along an axis.
#include "ridge/onnx/export/exporter.h"

namespace ridge {
namespace {

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
    {"argmax", WriteArgMax},
    {"cumprod", WriteCumProd},
    {"cumsum", WriteCumSum},
};

}  // namespace

std::span<const OnnxExporter> OnnxReduceExporters() { return kTable; }

}  // namespace ridge

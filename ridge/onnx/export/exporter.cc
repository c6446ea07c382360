#include "ridge/onnx/export/exporter.h"

#include <map>
#include <string>

#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

const std::map<std::string_view, OnnxWriteOp>& Table() {
  static const auto table = [] {
    std::map<std::string_view, OnnxWriteOp> map;
#define RIDGE_ONNX_FAMILY(Name)                                           \
  for (const OnnxExporter& entry : Onnx##Name##Exporters()) {             \
    const bool fresh = map.emplace(entry.op, entry.write).second;         \
    RIDGE_CHECK(fresh, std::string(entry.op) + " is in the table twice"); \
  }
#include "ridge/onnx/export/exporters/families.def"
#undef RIDGE_ONNX_FAMILY
    return map;
  }();
  return table;
}

// A pointwise operator's record says all of ONNX's operator: its inputs, and attributes by name.
Status WriteAsDefined(OnnxNodeWriter& n) {
  n.Emit(n.node().op->onnx.name, n.ins(), n.attrs());
  return Status();
}

// Axes are an input since opset 13 (ReduceSum) or 18 (the others), an attribute before, and not
// negative below 11.
Status WriteReduction(OnnxNodeWriter& n) {
  const char* op_type = n.node().op->onnx.name;
  const int64_t axes_are_input = std::string_view(op_type) == "ReduceSum" ? 13 : 18;
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

// Operators of forward graphs that ONNX cannot say.
const std::map<std::string_view, const char*>& Reasons() {
  static const std::map<std::string_view, const char*> reasons = {
      {"batch_norm",
       "normalizes by its batch, and has no running statistics. hint: export the run, which has "
       "them"},
      {"dropout", "drops at random; ONNX says nothing of which. hint: export the inference form"},
      {"ctc_loss", "is a loss that ONNX does not have. hint: export the graph without its loss"},
      {"stop_gradient",
       "stops gradients, which ONNX cannot say. hint: export the graph without its loss"},
      {"farthest_points",
       "chooses one point after the other, for which ONNX has no operator. hint: make the chosen "
       "points an input of the graph"},
      {"ball_query",
       "takes the first neighbours of a point, for which ONNX has no operator. hint: make the "
       "neighbours an input of the graph"},
      {"random_normal",
       "draws other numbers in every runtime. hint: make the numbers an input of the graph"},
      {"random_uniform",
       "draws other numbers in every runtime. hint: make the numbers an input of the graph"},
  };
  return reasons;
}

}  // namespace

OnnxWriteOp FindOnnxExporter(const OpDef& op) {
  const auto found = Table().find(op.name);
  if (found != Table().end()) return found->second;
  if (op.onnx.name == nullptr) return nullptr;
  if (IsReduction(op)) return WriteReduction;
  return op.elementwise != nullptr ? WriteAsDefined : nullptr;
}

std::string WhyNotExported(const OpDef& op) {
  if (const auto found = Reasons().find(op.name); found != Reasons().end()) return found->second;
  if (op.name == "fused") return "is made by passes. hint: export the graph before them";
  if (op.cost_class == CostClass::kOptimizer)
    return "updates parameters. hint: --with-training writes a training step";
  return "computes a gradient, for which ONNX has no operator. hint: export the graph without its "
         "gradients; --with-training lets who runs the file make them";
}

}  // namespace ridge

#include "ridge/onnx/export/exporter.h"

#include <map>
#include <string>

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

// Operators of forward graphs that ONNX cannot say.
const std::map<std::string_view, const char*>& Reasons() {
  static const std::map<std::string_view, const char*> reasons = {
      {"batch_norm",
       "normalizes by its batch, and has no running statistics. hint: export the run, which has "
       "them"},
      {"dropout", "drops at random; ONNX says nothing of which. hint: export the inference form"},
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
  return op.onnx.name != nullptr && op.elementwise != nullptr ? WriteAsDefined : nullptr;
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

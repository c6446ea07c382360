#include "ridge/graph/onnx/exporter.h"

#include <charconv>
#include <cstring>
#include <map>
#include <string>

namespace ridge {
namespace {

const std::map<std::string_view, const OnnxExporter*>& Table() {
  static const auto table = [] {
    std::map<std::string_view, const OnnxExporter*> map;
#define RIDGE_ONNX_FAMILY(Name) \
  for (const OnnxExporter& entry : Onnx##Name##Exporters()) map.emplace(entry.op, &entry);
#include "ridge/graph/onnx/exporters/families.def"
#undef RIDGE_ONNX_FAMILY
    return map;
  }();
  return table;
}

// "Tan@7" of a pointwise operator without attributes.
std::optional<OnnxExporter> FromDef(const OpDef& op) {
  if (op.onnx == nullptr || op.elementwise == nullptr || !op.attr_defaults.empty()) {
    return std::nullopt;
  }
  const char* at = std::strchr(op.onnx, '@');
  int64_t opset = 0;
  if (at == nullptr) return std::nullopt;
  std::from_chars(at + 1, at + std::strlen(at), opset);
  return OnnxExporter{.op = op.name.c_str(), .opset = opset, .onnx = op.onnx, .least_opset = opset};
}

}  // namespace

std::optional<OnnxExporter> FindOnnxExporter(const OpDef& op) {
  const auto found = Table().find(op.name);
  if (found == Table().end()) return FromDef(op);
  OnnxExporter entry = *found->second;
  if (entry.least_opset == 0) entry.least_opset = entry.opset;
  return entry;
}

}  // namespace ridge

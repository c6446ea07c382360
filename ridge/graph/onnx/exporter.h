// The table of ONNX exporters: which operators export knows.
//
// A family is a file in exporters/ with one table, in order of name.  An operator without an entry
// whose OpDef says `.onnx = "Tan@7"` and that is pointwise without attributes is written as that.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "ridge/graph/onnx/export_node.h"

namespace ridge {

struct OnnxExporter {
  const char* op;    // ours: "conv"
  int64_t opset;     // the first that has it in one node; lower ones may need several
  const char* onnx;  // one node with the same inputs and outputs and no attributes, or nullptr:
  Status (*write)(OnnxNodeWriter& node) = nullptr;
  int64_t least_opset = 0;  // below `opset` where several nodes can say it; 0: the same
};

#define RIDGE_ONNX_FAMILY(Name) std::span<const OnnxExporter> Onnx##Name##Exporters();
#include "ridge/graph/onnx/exporters/families.def"
#undef RIDGE_ONNX_FAMILY

// nullopt when ONNX has no such operator, or export does not know it.
std::optional<OnnxExporter> FindOnnxExporter(const OpDef& op);

}  // namespace ridge

// The table of ONNX converters: which operators import knows.
//
// A family is a file in converters/ with one table, in order of name.  A pointwise operator whose
// record names one of ONNX (OpDef::onnx) needs no entry: inputs and attributes are the same.
#pragma once
#include <span>
#include <string_view>

#include "ridge/onnx/import/node.h"

namespace ridge {

struct OnnxConverter {
  const char* domain;   // "" is ai.onnx
  const char* op_type;  // "Conv"
  Status (*convert)(OnnxNode& node);
};

#define RIDGE_ONNX_FAMILY(Name) std::span<const OnnxConverter> Onnx##Name##Converters();
#include "ridge/onnx/import/converters/families.def"
#undef RIDGE_ONNX_FAMILY

// nullptr when there is none.
const OnnxConverter* FindOnnxConverter(std::string_view domain, std::string_view op_type);

// All of them, in order of domain and operator: for tables and messages.
std::vector<const OnnxConverter*> AllOnnxConverters();

}  // namespace ridge

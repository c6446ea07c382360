// The table of ONNX exporters: which operators export knows.
//
// A family is a file in exporters/ with one table, in order of name.  A pointwise operator or a
// reduction whose record names one of ONNX (OpDef::onnx) needs no entry.
// The opset follows from what is written (OnnxSince, OnnxNodeWriter::HasOpset); an exporter that
// knows several forms writes the one for opset().
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "ridge/onnx/export/export_node.h"

namespace ridge {

using OnnxWriteOp = Status (*)(OnnxNodeWriter& node);

struct OnnxExporter {
  const char* op;  // ours: "conv"
  OnnxWriteOp write;
};

#define RIDGE_ONNX_FAMILY(Name) std::span<const OnnxExporter> Onnx##Name##Exporters();
#include "ridge/onnx/export/exporters/families.def"
#undef RIDGE_ONNX_FAMILY

// nullptr when it is not exported; WhyNotExported() says why.
OnnxWriteOp FindOnnxExporter(const OpDef& op);

// "draws other numbers in every runtime. hint: ...".  REQUIRES: it is not exported.
std::string WhyNotExported(const OpDef& op);

}  // namespace ridge

// ONNX exporters: elements chosen by indices.
#include "ridge/graph/onnx/exporter.h"

namespace ridge {
namespace {

Status WriteGather(OnnxNodeWriter& n) {
  n.Emit("Gather", {n.in(0), n.in(1)}, {{"axis", n.integer("axis")}});
  return Status();
}

constexpr OnnxExporter kTable[] = {
    {"gather", 11, nullptr, WriteGather},
};

}  // namespace

std::span<const OnnxExporter> OnnxIndexExporters() { return kTable; }

}  // namespace ridge

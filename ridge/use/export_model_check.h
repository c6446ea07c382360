// The comparison of ExportModel: a file that is read back, with the exported graph.
#pragma once
#include <map>
#include <string>

#include "ridge/graph/graph.h"
#include "ridge/use/export_model.h"

namespace ridge {

// Names and bound extents of the graph's named dimensions.
std::map<std::string, int64_t> BoundDims(const Graph& graph);

// Runs `graph` with `values` and the ONNX file at `path`, both at `graph`'s extents, and merges the
// differences into the report: the worst of each output.
// Fails with kInternal when the file cannot be imported or has other inputs or outputs.
Status CompareWithFile(const Graph& graph, const std::map<std::string, Tensor>& values,
                       const std::string& path, const ExportRequest& request,
                       const Machine& machine, ExportReport& report);

}  // namespace ridge

// ExportOnnx: Graph -> ONNX model; trained values into the model they came from; the file.
//
// A graph is written with the names of its inputs, outputs, variables and values, in the lowest
// opset and IR version that hold it: where a later opset has one node (LayerNormalization 17, Gelu
// 20, Attention 23) and an earlier one several, those several are written.  Opset 9 is the lowest,
// because the IR version before it wants variables to be inputs too.  Named dimensions stay named:
// what depends on them in a reshape or an expand is computed from the inputs' shapes.  So that this
// can be seen, a graph is compared with itself at other extents. A model that was imported keeps
// its own nodes; only its initializers' contents change.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/onnx/file/model.h"

namespace ridge {

inline constexpr int64_t kLeastExportOpset = 9;
inline constexpr int64_t kMostExportOpset = 26;

struct OnnxExportOptions {
  int64_t opset = 0;                  // 0: the lowest that holds the graph
  int64_t least_opset = 0;            // for what will be added to the file; 0: nothing
  std::string producer_version = {};  // ridge's
};

// A model to be written.  The tensors lie beside the message, so that they are not copied before
// the file is written.
struct OnnxDocument {
  OnnxDocument();
  OnnxDocument(OnnxDocument&&) noexcept;
  OnnxDocument& operator=(OnnxDocument&&) noexcept;
  ~OnnxDocument();

  std::unique_ptr<onnx::ModelProto> proto;  // initializers: name, type and dims only
  std::map<std::string, Tensor> contents;   // of the main graph's initializers
  std::vector<std::string> notes;           // what a user should know, one sentence each
};

// `forward` is an inference form: batch norm by its statistics, no dropout, no updates.  `values`
// holds every parameter and state.  `others` is the same model with its named dimensions at two
// other extents each; empty: WithOtherDims() is tried.  Where neither gives graphs that differ in
// extents only, the file has fixed extents, and a note says so.
// Fails with kUnsupported for operators that ONNX lacks (all are named), with kInvalidArgument for
// an opset below what the graph needs, and with kInvalidModel for an output whose name is that of
// another input or variable.
Result<OnnxDocument> ExportOnnx(const Graph& forward, const std::map<std::string, Tensor>& values,
                                const std::vector<Graph>& others, const OnnxExportOptions& options);

// The graph at two other extents of its named dimensions, far enough apart that strides do not hide
// the difference.  Empty when no dimension has a name, or the graph cannot have other extents.
std::vector<Graph> WithOtherDims(const Graph& graph);

// The model as it is, with the initializers (and `Constant` nodes, and states of a training step)
// that `values` names replaced.
// Names that the model lacks are ignored.  Fails with kInvalidModel for a value of another type.
Result<OnnxDocument> ReplaceInitializers(const OnnxModel& model,
                                         const std::map<std::string, Tensor>& values);

struct OnnxWriteOptions {
  // Tensors go into PATH.data when the whole would be larger (protobuf's limit is 2 GiB).
  int64_t inline_bytes = (int64_t{1} << 31) - (int64_t{1} << 20);
};

// The names of what was written, beside each other in one folder: the model, and its data or "".
struct OnnxFiles {
  std::string model, data;
  int64_t bytes = 0;  // of both
};

// Files are new or replaced as a whole by rename, so a crash leaves the old ones or the new ones
// and a link is never followed.  Fails with kUnavailable.
Result<OnnxFiles> WriteOnnx(OnnxDocument document, const std::string& path,
                            const OnnxWriteOptions& options = {});

}  // namespace ridge

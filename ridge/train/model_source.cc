#include "ridge/train/model_source.h"

#include <fmt/format.h>

#include <filesystem>

#include "ridge/core/files.h"
#include "ridge/graph/spec.h"
#include "ridge/graph/text.h"
#include "ridge/models/model.h"
#include "ridge/train/options.h"
#include "ridge/train/run_folder.h"

namespace ridge {
namespace {

constexpr int64_t kMostTextBytes = int64_t{1} << 30;

bool HasDim(const Graph& graph, const std::string& name) {
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    for (const std::string& dim : graph.value(id).dim_names) {
      if (dim == name || dim == name + "?") return true;
    }
  }
  return false;
}

Result<Graph> LoadText(const std::string& path, const ModelRequest& request) {
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostTextBytes));
  RIDGE_ASSIGN_OR_RETURN(Graph graph, ParseGraph(text, path));
  RIDGE_RETURN_IF_ERROR(CheckGraph(graph));
  std::map<std::string, int64_t> dims = request.dims;
  if (HasDim(graph, "batch")) dims.emplace("batch", request.batch);
  if (dims.empty()) return graph;
  return BindDims(graph, dims);
}

// A run's own copy of a text graph, else the model it was started with.
Result<Graph> LoadFromRun(const ModelRequest& request) {
  const std::string copy = request.model + "/model.ridge";
  std::error_code error;
  if (std::filesystem::exists(copy, error)) return LoadText(copy, request);
  const std::string file = request.model + "/options.json";
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMostTextBytes));
  RIDGE_ASSIGN_OR_RETURN(const TrainOptions options, OptionsFromJson(text, file));
  return BuildModel(options.model, {.batch = request.batch, .dtype = request.dtype});
}

}  // namespace

bool IsGraphFile(const std::string& model) { return model.ends_with(".ridge"); }

Result<Graph> LoadModel(const ModelRequest& request) {
  if (IsGraphFile(request.model)) {
    if (std::filesystem::is_regular_file(request.model)) return LoadText(request.model, request);
    return Status(ErrorCode::kInvalidModel, request.model + ": no such file");
  }
  if (request.model.ends_with(".onnx")) {
    return Status(ErrorCode::kUnsupported,
                  request.model + ": ONNX files are not read; hint: a text graph (.ridge)");
  }
  if (RunFolder::HoldsRun(request.model)) return LoadFromRun(request);
  return BuildModel(request.model, {.batch = request.batch, .dtype = request.dtype});
}

}  // namespace ridge

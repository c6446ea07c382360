#include "ridge/train/load/model_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "ridge/core/files.h"
#include "ridge/graph/text.h"
#include "ridge/graph/verify.h"
#include "ridge/models/config/model_folder.h"
#include "ridge/models/model.h"
#include "ridge/train/load/onnx_source.h"
#include "ridge/train/store/run.h"

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
  RIDGE_RETURN_IF_ERROR(CheckComputes(graph, path));
  std::map<std::string, int64_t> dims = request.dims;
  if (HasDim(graph, "batch")) dims.emplace("batch", request.batch);
  if (dims.empty()) return graph;
  return BindDims(graph, dims);
}

// Every load of a run's model uses the run's model options; given arrays override its dimensions.
Result<Graph> LoadOnnxFromRun(const Run& run, ModelRequest request, ModelNotes* notes) {
  const TrainOptions& options = run.options();
  request.training = true;  // its statistics were trained; InferenceForm uses them
  request.batch_norm_frozen = options.batch_norm == "frozen";
  request.use_file_optimizer = options.loss.empty();
  if (request.arrays.empty()) {
    RIDGE_ASSIGN_OR_RETURN(auto dims, ParseDims(options.dims));
    request.dims.merge(dims);
  }
  return LoadOnnx(run.ModelSource(), request, notes);
}

// The name table of a built-in model, or of a run's built-in model; empty for files, which have
// their own names.
Result<WeightNames> WeightNamesOf(const std::string& model) {
  std::string spec = model;
  if (Run::Exists(model)) {
    RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(model));
    spec = run.options().model;
  }
  if (IsGraphFile(spec) || IsOnnxFile(spec)) return WeightNames();
  RIDGE_ASSIGN_OR_RETURN(const ModelSpec parsed, ParseModelSpec(spec));
  const BuiltinModel* builtin = FindBuiltinModel(parsed.name);
  return builtin == nullptr ? WeightNames() : builtin->weight_names();
}

std::string JoinedNames(const std::vector<std::string>& names) {
  constexpr size_t kMost = 6;
  const size_t shown = std::min(names.size(), kMost);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  return names.size() > shown ? text + fmt::format(" and {} more", names.size() - shown) : text;
}

Status StartFromWeights(const ModelRequest& request, Graph& graph, ModelNotes* notes) {
  RIDGE_ASSIGN_OR_RETURN(const WeightNames names, WeightNamesOf(request.model));
  RIDGE_ASSIGN_OR_RETURN(const WeightsReport report,
                         LoadWeightsFile(request.weights, names, request.weights_skip, graph));
  if (notes == nullptr) return Status();
  notes->notes.push_back(fmt::format("{}: {} tensors loaded", request.weights, report.loaded));
  if (!report.kept.empty())
    notes->drawn.push_back(fmt::format("not of {}, these keep their starting values: {}",
                                       request.weights, JoinedNames(report.kept)));
  if (!report.passed.empty())
    notes->notes.push_back("these of the file are left out: " + JoinedNames(report.passed));
  if (!report.copies.empty())
    notes->notes.push_back("these start as copies: " + JoinedNames(report.copies));
  return Status();
}

// The run's own copy of a file, else its built-in model.
Result<Graph> LoadFromRun(const ModelRequest& request, ModelNotes* notes) {
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(request.model));
  const std::string source = run.ModelSource(request.of_run);
  if (IsGraphFile(source)) return LoadText(source, request);
  if (IsOnnxFile(source)) return LoadOnnxFromRun(run, request, notes);
  return BuildModel(source, {.batch = request.batch, .dtype = request.dtype});
}

// A run's own patterns when the model is one.
Result<TrainablePatterns> TrainedOf(const ModelRequest& request) {
  if (!Run::Exists(request.model)) return request.trained;
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(request.model));
  return TrainablePatterns{run.options().freeze, run.options().trainable};
}

Result<Graph> LoadPlainModel(const ModelRequest& request, ModelNotes* notes) {
  if (IsGraphFile(request.model)) {
    if (std::filesystem::is_regular_file(request.model)) return LoadText(request.model, request);
    return Status(ErrorCode::kInvalidModel, request.model + ": no such file");
  }
  if (IsOnnxFile(request.model)) return LoadOnnx(request.model, request, notes);
  if (Run::Exists(request.model)) return LoadFromRun(request, notes);
  const std::string spec =
      WithSizes(request.model, request.sizes, notes == nullptr ? nullptr : &notes->data_dims);
  return BuildModel(spec, {.batch = request.batch, .dtype = request.dtype});
}

}  // namespace

Result<std::string> OnnxFileOf(const std::string& model) {
  if (IsOnnxFile(model)) return model;
  if (IsGraphFile(model) || !Run::Exists(model)) return std::string();
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(model));
  const std::string source = run.ModelSource();
  return IsOnnxFile(source) ? source : std::string();
}

Status CheckModelFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return Status();
  return Status(ErrorCode::kInvalidModel, path + ": no such file");
}

namespace {

// The request that a model's public folder stands for.
Result<ModelRequest> FromFolder(const ModelRequest& request, ModelNotes* notes) {
  RIDGE_ASSIGN_OR_RETURN(ModelFolder folder, OpenModelFolder(request.model, request.weights));
  ModelRequest result = request;
  result.model = std::move(folder.spec);
  result.weights = std::move(folder.weights);
  result.weights_skip.insert(result.weights_skip.end(), folder.weights_skip.begin(),
                             folder.weights_skip.end());
  if (notes != nullptr)
    notes->notes.insert(notes->notes.end(), folder.notes.begin(), folder.notes.end());
  return result;
}

}  // namespace

Result<Graph> LoadModel(const ModelRequest& request, ModelNotes* notes) {
  if (!Run::Exists(request.model) && IsModelFolder(request.model)) {
    RIDGE_ASSIGN_OR_RETURN(const ModelRequest meant, FromFolder(request, notes));
    return LoadModel(meant, notes);
  }
  if (request.weights.empty() && !request.weights_skip.empty()) {
    return Status(
        ErrorCode::kInvalidArgument,
        "--weights-skip is given without --weights; it says what of that file is left out");
  }
  ModelRequest full = request;
  RIDGE_ASSIGN_OR_RETURN(full.trained, TrainedOf(request));
  ModelNotes unread;
  ModelNotes& told = notes == nullptr ? unread : *notes;
  RIDGE_ASSIGN_OR_RETURN(Graph graph, LoadPlainModel(full, &told));
  if (!request.weights.empty()) RIDGE_RETURN_IF_ERROR(StartFromWeights(request, graph, &told));
  if (told.file_has_optimizer || request.all_parameters) return graph;
  RIDGE_RETURN_IF_ERROR(ChooseTrainable(full.trained, graph));
  const std::vector<std::string> frozen = FrozenParameters(graph);
  told.fixed.insert(told.fixed.end(), frozen.begin(), frozen.end());
  return graph;
}

}  // namespace ridge

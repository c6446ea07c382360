#include "ridge/train/load/onnx_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "ridge/core/files.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/learn/training_graph.h"
#include "ridge/onnx/file/external_data.h"
#include "ridge/onnx/import/import.h"
#include "ridge/onnx/training/training_info.h"
#include "ridge/train/load/onnx_dims.h"
#include "ridge/train/load/onnx_external_names.h"

namespace ridge {
namespace {

bool DependsOnData(const Status& status) {
  return status.code() == ErrorCode::kUnsupported &&
         status.message().find("depends on data") != std::string::npos;
}

// Inputs of integers (a shape, axes) are tried before floats (scales).
std::map<std::string, Tensor> ArraysOf(const std::vector<NamedTensor>& arrays, bool floats) {
  std::map<std::string, Tensor> known;
  for (const auto& [name, tensor] : arrays) {
    if (floats || !IsFloat(tensor.type().dtype)) known.emplace(name, tensor);
  }
  return known;
}

Result<OnnxImport> Import(const OnnxModel& model, OnnxImportOptions& options,
                          const std::vector<NamedTensor>& arrays) {
  Result<OnnxImport> imported = ImportOnnx(model, options);
  for (const bool floats : {false, true}) {
    if (imported.ok() || arrays.empty() || !DependsOnData(imported.status())) break;
    options.known_inputs = ArraysOf(arrays, floats);
    imported = ImportOnnx(model, options);
  }
  return imported;
}

// File names that a run writes itself, which a model's data must not have.
bool IsOursInRun(const std::string& name) {
  static const std::set<std::string> kNames = {
      "model.onnx",    "model.ridge",  "options.json", "plan.txt",     "plan.json",
      "metrics.jsonl", "summary.json", "trace.json",   "kernels.json", "run.lock"};
  return kNames.contains(name) || name.starts_with("checkpoints") ||
         name.starts_with("events.out.");
}

Status CopyBeneath(const std::string& from_folder, const std::string& name,
                   const std::string& to_folder, const std::string& to_name) {
  RIDGE_ASSIGN_OR_RETURN(const OwnedFd from, OpenBeneath(from_folder, name, O_RDONLY));
  const std::string parent = std::filesystem::path(to_name).parent_path().string();
  if (!parent.empty()) RIDGE_RETURN_IF_ERROR(MakeFolders(to_folder + "/" + parent));
  RIDGE_ASSIGN_OR_RETURN(const OwnedFd to,
                         OpenBeneath(to_folder, to_name, O_WRONLY | O_CREAT | O_TRUNC));
  constexpr size_t kPiece = size_t{1} << 30;
  ssize_t copied = 1;
  while (copied > 0) {
    copied = sendfile(to.get(), from.get(), nullptr, kPiece);
    if (copied < 0 && errno == EINTR) copied = 1;
  }
  if (copied == 0) return SyncPath(to_folder + "/" + to_name);
  return Status(ErrorCode::kUnavailable,
                fmt::format("{}/{}: cannot be copied to {}: {}", from_folder, name, to_folder,
                            std::strerror(errno)));
}

// The dimensions that neither --dim nor --batch sets.
std::vector<std::string> DimsOfData(const OnnxModel& model, const ModelRequest& request,
                                    std::map<std::string, int64_t> dims) {
  for (const auto& [name, extent] : request.dims) dims.erase(name);
  for (const OnnxValueInfo& input : model.inputs()) {
    if (!input.dims.empty()) dims.erase(input.dims[0].name);
  }
  std::vector<std::string> texts;
  for (const auto& [name, extent] : dims) texts.push_back(fmt::format("{}={}", name, extent));
  return texts;
}

// Before differentiation, which would read the inner values of what exporters write as nodes.
Result<Graph> Recognized(Graph graph) {
  RIDGE_ASSIGN_OR_RETURN(graph, RecognizePatterns(std::move(graph)));
  return RecognizeAttention(graph);
}

Result<Graph> LoadOwnStep(const OnnxModel& model, const OnnxImportOptions& options,
                          ModelNotes* notes) {
  RIDGE_ASSIGN_OR_RETURN(
      Graph graph, ImportTrainingStep(model, options, {.rate = kLrInput, .count = kStepInput}));
  if (notes != nullptr) {
    notes->file_has_optimizer = true;
    notes->own_rate = TrainingStepRate(model);
    notes->external_files = OnnxExternalNames(model.proto());
    notes->notes.push_back("trains by the step that the file carries");
  }
  return graph;
}

}  // namespace

Result<Graph> LoadOnnx(const std::string& path, const ModelRequest& request, ModelNotes* notes) {
  RIDGE_ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Open(path));
  OnnxImportOptions options;
  RIDGE_ASSIGN_OR_RETURN(options.dims, BindOnnxDims(model, request));
  if (notes != nullptr) notes->data_dims = DimsOfData(model, request, options.dims);
  if (request.use_file_optimizer && request.training && HasTrainingStep(model))
    return LoadOwnStep(model, options, notes);
  options.training = request.training;
  options.batch_norm = request.batch_norm_frozen ? OnnxBatchNorm::kFrozen : OnnxBatchNorm::kTrain;
  options.all_parameters = request.all_parameters;
  options.freeze = request.trained.freeze;
  options.trainable = request.trained.trainable;
  RIDGE_ASSIGN_OR_RETURN(OnnxImport imported, Import(model, options, request.arrays));
  if (notes != nullptr) {
    notes->fixed = std::move(imported.fixed);
    notes->notes = std::move(imported.notes);
    notes->external_files = OnnxExternalNames(model.proto());
    for (const auto& [name, tensor] : options.known_inputs) notes->known.push_back(name);
  }
  if (!request.training) return std::move(imported.graph);
  return Recognized(std::move(imported.graph));
}

Status KeepOnnx(const std::string& path, const ModelNotes& notes, const std::string& run_folder) {
  const std::filesystem::path file = path;
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  for (const std::string& name : notes.external_files) {
    if (IsOursInRun(name)) {
      return Status(ErrorCode::kUnsupported,
                    fmt::format("{}: its data lie in a file '{}', a name that a run folder uses. "
                                "hint: save the model with another name for its external data",
                                path, name));
    }
    RIDGE_RETURN_IF_ERROR(CopyBeneath(folder, name, run_folder, name));
  }
  std::error_code error;
  std::filesystem::copy_file(file, run_folder + "/model.onnx",
                             std::filesystem::copy_options::overwrite_existing, error);
  if (!error) return SyncPath(run_folder + "/model.onnx");
  return Status(ErrorCode::kUnavailable,
                fmt::format("{}: cannot be copied to {}: {}", path, run_folder, error.message()));
}

}  // namespace ridge

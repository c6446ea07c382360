#include "ridge/use/export_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "onnx/onnx-ml.pb.h"
#include "ridge/core/files.h"
#include "ridge/core/safetensors.h"
#include "ridge/core/version.h"
#include "ridge/graph/interpret.h"
#include "ridge/learn/inference_form.h"
#include "ridge/learn/loss.h"
#include "ridge/onnx/export/export.h"
#include "ridge/onnx/import/import.h"
#include "ridge/onnx/training/training_info.h"
#include "ridge/onnx/training/training_info_write.h"
#include "ridge/train/load/class_weights.h"
#include "ridge/train/load/model_source.h"
#include "ridge/train/load/trained_values.h"
#include "ridge/train/loop/run_once.h"
#include "ridge/train/options/options.h"
#include "ridge/train/store/run.h"
#include "ridge/use/export_model_check.h"
#include "ridge/use/signature.h"

namespace ridge {
namespace {

// Results of Constant nodes, in which some files keep their weights.
std::set<std::string> ConstantNames(const OnnxModel& model) {
  std::set<std::string> names;
  for (const onnx::NodeProto& node : model.proto().graph().node()) {
    if (node.op_type() == "Constant" && node.output_size() == 1) names.insert(node.output(0));
  }
  return names;
}

constexpr int64_t kDefaultBatch = 2;

// A folder that is gone at the end, with what is still in it: beside what `out` stands for, or,
// where that is written in place, among temporary files.
class StagingFolder {
 public:
  static Result<StagingFolder> Make(const std::string& out) {
    RIDGE_ASSIGN_OR_RETURN(OutputTarget target, FindOutputTarget(out));
    if (target.in_place && !std::filesystem::is_directory(target.path))
      target.path = (std::filesystem::temp_directory_path() / "model").string();
    const std::filesystem::path path = target.path;
    const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
    std::string pattern = (parent / ".ridge-export-XXXXXX").string();
    if (path.filename().empty() || std::filesystem::is_directory(path)) {
      return InvalidArgument(fmt::format("--out is '{}'; it must be a file's name", out));
    }
    if (mkdtemp(pattern.data()) == nullptr) {
      return Status(ErrorCode::kUnavailable,
                    fmt::format("{}: no folder can be made there", parent.string()));
    }
    return StagingFolder(pattern, out, std::move(target));
  }
  StagingFolder(StagingFolder&& other) noexcept
      : folder_(std::move(other.folder_)),
        out_(std::move(other.out_)),
        target_(std::move(other.target_)) {
    other.folder_.clear();
  }
  StagingFolder& operator=(StagingFolder&&) = delete;
  ~StagingFolder() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  std::string File() const {
    return folder_ + "/" + std::filesystem::path(target_.path).filename().string();
  }
  // Where File() + suffix goes.
  std::string Place(const std::string& suffix) const { return target_.path + suffix; }

  // Moves File() + suffix to its place.
  Status Publish(const std::string& suffix) const {
    if (target_.in_place && suffix.empty()) return CopyInto(target_, File());
    if (target_.in_place) {
      return InvalidArgument(
          fmt::format("--out is '{}', and tensors this large need a second file beside it. "
                      "hint: --out with a file's name",
                      out_));
    }
    if (suffix.empty()) TakePermissions(target_, File());
    std::error_code error;
    std::filesystem::rename(File() + suffix, Place(suffix), error);
    if (!error) return SyncPath(Place(suffix));
    return Status(ErrorCode::kUnavailable,
                  fmt::format("{}{}: cannot be written: {}", out_, suffix, error.message()));
  }

 private:
  StagingFolder(std::string folder, std::string out, OutputTarget target)
      : folder_(std::move(folder)), out_(std::move(out)), target_(std::move(target)) {}
  std::string folder_, out_;
  OutputTarget target_;  // path: where the file goes, or, written in place, only a name
};

// The model as it is exported: its inference form at some extents, and its variables' contents.
struct Exported {
  Graph graph;
  std::map<std::string, Tensor> values;
};

// The loss is for training; a graph that has nothing else keeps it.
Graph WithoutLoss(const Graph& graph) {
  Graph kept = graph;
  kept.ClearOutputs();
  for (const GraphOutput& output : graph.outputs()) {
    if (output.name != "loss") kept.AddOutput(output.name, output.value);
  }
  return kept.outputs().empty() ? graph : kept;
}

Result<Graph> LoadInferenceForm(const ExportRequest& request, int64_t batch) {
  RIDGE_ASSIGN_OR_RETURN(const Graph forward, LoadModel({.model = request.model,
                                                         .batch = batch,
                                                         .dims = request.dims,
                                                         .weights = request.weights,
                                                         .weights_skip = request.weights_skip}));
  return InferenceForm(WithoutLoss(forward));
}

// Trained values where there is a run, else those that training would start with.
Result<std::map<std::string, Tensor>> ValuesOf(const ExportRequest& request, const Graph& graph) {
  std::map<std::string, Tensor> values;
  RIDGE_ASSIGN_OR_RETURN(const auto trained, TrainedValues(request.model, request.checkpoint));
  for (const ValueInfo& info : graph.values()) {
    if (info.kind != ValueKind::kParameter && info.kind != ValueKind::kState) continue;
    const auto found = trained.find(info.name);
    if (found == trained.end()) {
      RIDGE_ASSIGN_OR_RETURN(values[info.name], InitialValue(info, request.seed));
    } else {
      values[info.name] = found->second;
    }
  }
  return values;
}

// An extent of the batch other than `batch`, for the second comparison.
int64_t OtherBatch(int64_t batch) { return batch + 1; }

// The extents that the run had, where none is given.
Result<ExportRequest> WithDimsOfRun(ExportRequest request) {
  if (!Run::Exists(request.model)) return request;
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(request.model));
  for (const std::vector<std::string>* texts : {&run.options().dims, &run.options().data_dims}) {
    RIDGE_ASSIGN_OR_RETURN(const auto dims, ParseDims(*texts));
    request.dims.insert(dims.begin(), dims.end());
  }
  return request;
}

class OnnxExport {
 public:
  OnnxExport(const ExportRequest& request, const Machine& machine)
      : request_(request), machine_(machine), batch_(request.batch.value_or(kDefaultBatch)) {}

  Result<ExportReport> Export() {
    RIDGE_ASSIGN_OR_RETURN(const StagingFolder staging, StagingFolder::Make(request_.out));
    RIDGE_ASSIGN_OR_RETURN(foreign_file_, OnnxFileOf(request_.model));
    RIDGE_ASSIGN_OR_RETURN(OnnxDocument document, IsForeign() ? FromFile() : FromGraph());
    if (request_.training) RIDGE_RETURN_IF_ERROR(AddTraining(document));
    RIDGE_RETURN_IF_ERROR(AddSignature(document));
    Describe(document);
    RIDGE_ASSIGN_OR_RETURN(const OnnxFiles files, WriteOnnx(std::move(document), staging.File()));
    report_.bytes = files.bytes;
    RIDGE_RETURN_IF_ERROR(Check(staging.File()));
    if (!report_.accepted()) return std::move(report_);
    if (!files.data.empty()) {
      RIDGE_RETURN_IF_ERROR(staging.Publish(".data"));
      report_.data_path = staging.Place(".data");
    }
    RIDGE_RETURN_IF_ERROR(staging.Publish(""));
    report_.path = request_.out;
    return std::move(report_);
  }

 private:
  // Whether the model came as an ONNX file, which keeps its nodes.
  bool IsForeign() const { return !foreign_file_.empty(); }

  Result<OnnxDocument> FromGraph();
  Result<OnnxDocument> FromFile();
  Result<Graph> LoadAt(int64_t batch) const;
  Result<Graph> ImportFile(int64_t batch) const;
  Status AddTraining(OnnxDocument& document);
  Status AddSignature(OnnxDocument& document);
  Result<TrainOptions> TrainingOptions() const;
  Result<LossSpec> TrainingLoss(const std::string& asked, const OnnxDocument& document) const;
  void NoteInferenceForm(const Graph& graph);
  Status CheckTraining(const std::string& path, const Graph& graph) const;
  void Describe(const OnnxDocument& document);
  Status Check(const std::string& path);

  const ExportRequest& request_;
  const Machine& machine_;
  std::string foreign_file_;
  int64_t batch_;
  std::map<std::string, Tensor> values_;
  ExportReport report_;
};

Result<OnnxDocument> OnnxExport::FromGraph() {
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, LoadAt(batch_));
  RIDGE_ASSIGN_OR_RETURN(values_, ValuesOf(request_, graph));
  report_.tensors = static_cast<int64_t>(values_.size());
  // Far from the first, so that a convolution or pool cannot hide the difference.
  std::vector<Graph> others = WithOtherDims(graph);
  for (const int64_t batch : {batch_ + 64, batch_ + 193}) {
    if (others.size() == 2) break;
    Result<Graph> other = LoadAt(batch);
    if (other.ok()) others.push_back(*std::move(other));
  }
  return ExportOnnx(graph, values_, others,
                    {.opset = request_.opset,
                     .least_opset = request_.training ? kCrossEntropyOpset : 0,
                     .producer_version = kRidgeVersion});
}

Result<OnnxDocument> OnnxExport::FromFile() {
  RIDGE_ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Open(foreign_file_));
  if (request_.opset != 0 && request_.opset != model.opset("")) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("export: {} has opset {} and keeps its nodes; --opset is {}. hint: "
                              "onnx.version_converter",
                              foreign_file_, model.opset(""), request_.opset));
  }
  if (!model.inputs().empty() && !request_.batch) {
    const std::vector<OnnxDim>& dims = model.inputs()[0].dims;
    if (!dims.empty() && dims[0].extent > 0) batch_ = dims[0].extent;
  }
  RIDGE_ASSIGN_OR_RETURN(values_, TrainedValues(request_.model, request_.checkpoint));
  if (!values_.empty()) {
    RIDGE_ASSIGN_OR_RETURN(const Graph graph, ImportFile(batch_));
    for (ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
      const auto found = values_.find(graph.value(id).name);
      if (found != values_.end())
        found->second = WithFloatType(found->second, graph.type(id).dtype);
    }
  }
  report_.tensors = static_cast<int64_t>(model.initializers().size());
  Result<OnnxDocument> document = ReplaceInitializers(model, values_);
  const std::set<std::string> constants = ConstantNames(model);
  for (auto at = values_.begin(); at != values_.end();) {
    const bool kept = model.initializers().contains(at->first) || constants.contains(at->first);
    at = kept ? std::next(at) : values_.erase(at);
  }
  return document;
}

Result<Graph> OnnxExport::LoadAt(int64_t batch) const {
  return IsForeign() ? ImportFile(batch) : LoadInferenceForm(request_, batch);
}

// As the file has it, not the training form.
Result<Graph> OnnxExport::ImportFile(int64_t batch) const {
  RIDGE_ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Open(foreign_file_));
  OnnxImportOptions options;
  options.dims = request_.dims;
  options.all_parameters = true;  // so that trained values find their places
  for (const OnnxValueInfo& input : model.inputs()) {
    if (!input.dims.empty() && input.dims[0].extent < 0)
      options.dims.emplace(input.dims[0].name, batch);
  }
  RIDGE_ASSIGN_OR_RETURN(OnnxImport imported, ImportOnnx(model, options));
  return std::move(imported.graph);
}

// The options of the run, with those that were given in their place.
Result<TrainOptions> OnnxExport::TrainingOptions() const {
  const ExportTraining& given = *request_.training;
  TrainOptions options;
  if (Run::Exists(request_.model)) {
    RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(request_.model));
    options = run.options();
  }
  if (!given.loss.empty()) options.loss = given.loss;
  if (given.optimizer && *given.optimizer != options.optimizer.name) {
    options.optimizer = {};
    options.optimizer.name = *given.optimizer;
  }
  options.lr = given.lr.value_or(options.lr);
  if (given.momentum) options.optimizer.momentum = *given.momentum;
  if (given.weight_decay) options.optimizer.weight_decay = given.weight_decay;
  RIDGE_RETURN_IF_ERROR(FindOptimizer(options.optimizer).status());
  return options;
}

// `--loss` as it would have been given.
Result<LossSpec> OnnxExport::TrainingLoss(const std::string& asked,
                                          const OnnxDocument& document) const {
  if (!asked.empty()) return ParseLoss(asked);
  std::vector<std::string> outputs;
  for (const onnx::ValueInfoProto& output : document.proto->graph().output())
    outputs.push_back(output.name());
  for (const char* name : {"logits", "loss"}) {
    if (std::find(outputs.begin(), outputs.end(), name) == outputs.end()) continue;
    return ParseLoss(name == std::string("logits") ? "cross_entropy:logits" : name);
  }
  return InvalidArgument(
      fmt::format("export: --with-training needs a loss; the outputs are {}. hint: --loss "
                  "cross_entropy:{}",
                  fmt::join(outputs, ", "), outputs.empty() ? "OUTPUT" : outputs[0]));
}

// The file's nodes are those of inference; so is what its training step computes.
void OnnxExport::NoteInferenceForm(const Graph& graph) {
  const auto has = [&](const char* op) {
    return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                       [&](const Node& node) { return node.op->name == op; });
  };
  if (has("batch_norm"))
    report_.notes.push_back("the training step normalizes by the running statistics, which stay");
  if (has("dropout")) report_.notes.push_back("the training step drops nothing");
}

const char* KindName(LossKind kind) {
  switch (kind) {
    case LossKind::kCrossEntropy:
      return "cross_entropy";
    case LossKind::kMse:
      return "mse";
    case LossKind::kBce:
      return "bce";
    case LossKind::kOutput:
      break;
  }
  return "";
}

Status OnnxExport::AddTraining(OnnxDocument& document) {
  RIDGE_ASSIGN_OR_RETURN(const TrainOptions options, TrainingOptions());
  RIDGE_ASSIGN_OR_RETURN(const LossSpec loss, TrainingLoss(options.loss, document));
  const OptimizerOptions& optimizer = options.optimizer;
  OnnxTrainingStep step{
      .loss_kind = KindName(loss.kind),
      .output = loss.output,
      .output_dims = {},
      .trained = {},
      .optimizer = optimizer.name,
      .rate = options.lr,
      .momentum = optimizer.momentum,
      .nesterov = optimizer.nesterov,
      .beta1 = optimizer.beta1,
      .beta2 = optimizer.beta2,
      .epsilon = optimizer.epsilon,
      .weight_decay = optimizer.weight_decay.value_or(optimizer.name == "adamw" ? 0.01 : 0)};
  RIDGE_ASSIGN_OR_RETURN(
      const Graph graph,
      LoadModel({.model = request_.model, .batch = batch_, .dims = request_.dims}));
  for (ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
    const ValueInfo& info = graph.value(id);
    if (info.trainable && document.contents.contains(info.name)) step.trained.push_back(info.name);
  }
  if (const ValueId output = graph.FindOutput(loss.output); output != kNoValue)
    step.output_dims = graph.type(output).dims;
  NoteInferenceForm(graph);
  RIDGE_ASSIGN_OR_RETURN(const LossShape shape, LossShapeOf(options));
  step.label_smoothing = shape.label_smoothing;
  step.focal_gamma = shape.focal_gamma;
  step.class_weights = shape.class_weights;
  if (optimizer.state != "f32") {
    report_.notes.push_back(fmt::format(
        "the training step keeps its moments in f32; the run kept them in {}", optimizer.state));
  }
  if (shape.dice > 0) report_.notes.push_back("the training step has no part of --dice");
  return AddTrainingStep(step, document);
}

// What `ridge predict` reads: of a run that gives one answer a sample.
Status OnnxExport::AddSignature(OnnxDocument& document) {
  if (!Run::Exists(request_.model)) return Status();
  const Result<Signature> signature = SignatureOfRun(request_.model);
  if (signature.status().code() == ErrorCode::kUnsupported) return Status();
  RIDGE_RETURN_IF_ERROR(signature.status());
  SetSignature(*signature, *document.proto);
  report_.carries = DescribeSignature(*signature);
  return Status();
}

// The step must be readable again.
Status OnnxExport::CheckTraining(const std::string& path, const Graph& graph) const {
  RIDGE_ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Open(path));
  OnnxImportOptions options;
  options.dims = BoundDims(graph);
  return ImportTrainingStep(model, options).status();
}

void OnnxExport::Describe(const OnnxDocument& document) {
  report_.ir_version = document.proto->ir_version();
  for (const onnx::OperatorSetIdProto& set : document.proto->opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") report_.opset = set.version();
  }
  report_.notes.insert(report_.notes.begin(), document.notes.begin(), document.notes.end());
}

Status OnnxExport::Check(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, LoadAt(batch_));
  RIDGE_RETURN_IF_ERROR(CompareWithFile(graph, values_, path, request_, machine_, report_));
  if (request_.training) RIDGE_RETURN_IF_ERROR(CheckTraining(path, graph));
  RIDGE_ASSIGN_OR_RETURN(const OnnxModel written, OnnxModel::Open(path));
  if (OpenOnnxDims(written, request_.dims).empty()) return Status();
  RIDGE_ASSIGN_OR_RETURN(const Graph other, LoadAt(OtherBatch(batch_)));
  return CompareWithFile(other, values_, path, request_, machine_, report_);
}

// Everything that a float variable or initializer is, by name.
Result<std::map<std::string, Tensor>> NamedValues(const ExportRequest& request) {
  RIDGE_ASSIGN_OR_RETURN(const std::string file, OnnxFileOf(request.model));
  if (file.empty()) {
    RIDGE_ASSIGN_OR_RETURN(const Graph graph,
                           LoadInferenceForm(request, request.batch.value_or(kDefaultBatch)));
    return ValuesOf(request, graph);
  }
  RIDGE_ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Open(file));
  std::map<std::string, Tensor> values;
  RIDGE_ASSIGN_OR_RETURN(const auto trained, TrainedValues(request.model, request.checkpoint));
  for (const auto& [name, tensor] : model.initializers()) {
    const auto found = trained.find(name);
    if (!IsFloat(tensor.type().dtype)) continue;
    const Tensor& value = found != trained.end() ? found->second : tensor;
    RIDGE_ASSIGN_OR_RETURN(values[name], value.Load());
  }
  for (const std::string& name : ConstantNames(model)) {
    if (const auto found = trained.find(name); found != trained.end()) values[name] = found->second;
  }
  return values;
}

Status CheckSafetensors(const std::map<std::string, Tensor>& values, const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  for (const auto& [name, tensor] : values) {
    RIDGE_ASSIGN_OR_RETURN(const Tensor read, file.Load(name));
    if (!read.same_bits(tensor)) {
      return Status(ErrorCode::kInternal,
                    fmt::format("{}: '{}' reads back as other bytes", path, name));
    }
  }
  return Status();
}

Result<ExportReport> ExportSafetensors(const ExportRequest& request) {
  RIDGE_ASSIGN_OR_RETURN(const auto values, NamedValues(request));
  RIDGE_ASSIGN_OR_RETURN(const StagingFolder staging, StagingFolder::Make(request.out));
  std::vector<SafetensorsItem> items;
  for (const auto& [name, tensor] : values) items.push_back({name, tensor.type(), tensor.data()});
  RIDGE_ASSIGN_OR_RETURN(
      const FileDigest digest,
      WriteSafetensors(staging.File(), items, {{"format", "pt"}, {"producer", "ridge"}}));
  RIDGE_RETURN_IF_ERROR(CheckSafetensors(values, staging.File()));
  RIDGE_RETURN_IF_ERROR(staging.Publish(""));
  ExportReport report;
  report.path = request.out;
  report.bytes = digest.size_bytes;
  report.tensors = static_cast<int64_t>(values.size());
  return report;
}

}  // namespace

bool ExportReport::accepted() const {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const ExportDifference& d) { return d.accepted(); });
}

Result<ExportReport> ExportModel(const ExportRequest& request, const Machine& machine) {
  RIDGE_RETURN_IF_ERROR(RefuseWeightsOfRun("export", request.model, request.weights));
  if (!request.weights.empty() && IsOnnxFile(request.model)) {
    return InvalidArgument(
        fmt::format("export: {} is an ONNX file, which has its own weights; --weights is "
                    "for built-in models and graphs in text form",
                    request.model));
  }
  RIDGE_ASSIGN_OR_RETURN(const ExportRequest full, WithDimsOfRun(request));
  if (full.format == "onnx") return OnnxExport(full, machine).Export();
  if (full.format == "safetensors") return ExportSafetensors(full);
  return Status(ErrorCode::kUnsupported,
                fmt::format("export: no writer for '{}'. hint: --to onnx, which converters read",
                            request.format));
}

}  // namespace ridge

#include "ridge/use/predictor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ridge/data/batch_loader.h"
#include "ridge/data/spelling.h"
#include "ridge/graph/builder.h"
#include "ridge/learn/averages.h"
#include "ridge/learn/ctc.h"
#include "ridge/learn/training_graph.h"
#include "ridge/train/job/job.h"
#include "ridge/train/job/scalar_inputs.h"
#include "ridge/train/load/forward.h"
#include "ridge/train/loop/run_once.h"
#include "ridge/train/store/preprocessing_file.h"

namespace ridge {
namespace {

constexpr int64_t kFileBatch = 32;

// The best class of each frame as the output.
Result<Graph> TextGraph(const Graph& graph, const Signature& signature) {
  const ValueId lengths = LengthsOf(graph, signature);
  const ValueId scores = graph.FindOutput(signature.output);
  GraphBuilder b(graph);
  const Value best = BestClasses(b, b.At(scores), b.At(lengths), signature.blank);
  b.graph().ClearOutputs();
  b.Output(signature.output, best);
  return b.Build();
}

// The graph of the answer alone.
Result<Graph> AnswerGraph(const Graph& graph, const Signature& signature) {
  const std::string& output = signature.output;
  Graph wanted = graph;
  wanted.ClearOutputs();
  wanted.AddOutput(output, graph.FindOutput(output));
  if (signature.kind == AnswerKind::kText) {
    RIDGE_ASSIGN_OR_RETURN(wanted, TextGraph(graph, signature));
  }
  RIDGE_ASSIGN_OR_RETURN(NamedGraph infer, BuildInferenceGraph(wanted));
  return std::move(infer.graph);
}

BatchSpec SpecOf(const Graph& graph) {
  BatchSpec spec;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    const ValueInfo& input = graph.value(id);
    if (input.name == kRngInput) continue;
    TensorType type = input.type;
    if (!type.dims.empty()) type.dims.erase(type.dims.begin());
    spec.inputs.push_back({input.name, std::move(type)});
  }
  return spec;
}

Status NoSignature(const std::string& path) {
  return Status(ErrorCode::kInvalidModel,
                fmt::format("{}: carries no {}, so how a picture or a row becomes its input is "
                            "not known. hint: export it from a run (ridge export RUN --to onnx), "
                            "or ridge run with arrays",
                            path, kSignatureKey));
}

}  // namespace

Result<Predictor> Predictor::Open(const PredictorRequest& request, const Machine& machine) {
  Predictor predictor(request, machine);
  const bool file = !Run::Exists(request.model) && IsOnnxFile(request.model);
  RIDGE_RETURN_IF_ERROR(file ? predictor.OpenFile() : predictor.OpenRun());
  return predictor;
}

Status Predictor::OpenRun() {
  RIDGE_ASSIGN_OR_RETURN(run_, ridge::Run::Open(request_.model));
  options_ = run_->options();
  options_.data.clear();
  options_.validation.clear();
  options_.weights.clear();  // the checkpoint replaces them
  options_.weights_skip.clear();
  if (IsOnnxFile(run_->ModelSource()))
    options_.dims.insert(options_.dims.end(), options_.data_dims.begin(), options_.data_dims.end());
  RIDGE_ASSIGN_OR_RETURN(const Forward forward, LoadForward(options_, run_->path()));
  RIDGE_ASSIGN_OR_RETURN(const auto kept, PreprocessingOf(*run_));
  RIDGE_ASSIGN_OR_RETURN(signature_, FindSignature(forward.graph, forward.facts, options_.loss,
                                                   kept == nullptr ? Preprocessing() : *kept));
  batch_ = options_.batch;
  return Describe(forward.graph);
}

Status Predictor::OpenFile() {
  RIDGE_ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Open(request_.model));
  const std::optional<std::string> text = SignatureText(model);
  if (!text) return NoSignature(request_.model);
  RIDGE_ASSIGN_OR_RETURN(signature_, SignatureFromJson(*text, request_.model));
  if (auto& text = signature_.preprocessing.text; text && !text->files.empty()) {
    RIDGE_ASSIGN_OR_RETURN(tokenizer_, UnpackedTokenizer::Write(signature_));
    text->files = tokenizer_->paths();
  }
  batch_ = kFileBatch;
  for (const OnnxValueInfo& input : model.inputs()) {
    batch_is_fixed_ = !input.dims.empty() && input.dims[0].extent > 0;
    if (batch_is_fixed_) batch_ = input.dims[0].extent;
  }
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, LoadAt(batch_));
  return Describe(graph);
}

Status Predictor::Describe(const Graph& graph) {
  RIDGE_RETURN_IF_ERROR(CheckSignature(request_.model, signature_, graph));
  RIDGE_ASSIGN_OR_RETURN(const Graph answer, AnswerGraph(graph, signature_));
  for (const InputSpec& input : SpecOf(answer).inputs) inputs_.push_back({input.name, input.type});
  const TensorType& type = answer.type(answer.FindOutput(signature_.output));
  outputs_ = type.elements() / type.dims[0];
  output_dims_.assign(type.dims.begin() + 1, type.dims.end());
  return Status();
}

Result<Graph> Predictor::LoadAt(int64_t batch) const {
  if (!run_) {
    ModelRequest request;
    request.model = request_.model;
    request.batch = batch;
    request.training = false;
    return LoadModel(request);
  }
  TrainOptions options = options_;
  options.batch = batch;
  RIDGE_ASSIGN_OR_RETURN(Forward forward, LoadForward(options, run_->path()));
  return std::move(forward.graph);
}

// At a smaller batch for few samples, where the model takes one.
Result<Graph> Predictor::LoadSmallest(int64_t samples) {
  const int64_t wanted = std::min(request_.batch.value_or(batch_), samples);
  if (!batch_is_fixed_ && wanted != batch_) {
    Result<Graph> graph = LoadAt(wanted);
    if (graph.ok()) batch_ = wanted;
    if (graph.ok()) return graph;
  }
  return LoadAt(batch_);
}

Status Predictor::Prepare(int64_t samples) {
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, LoadSmallest(samples));
  RIDGE_ASSIGN_OR_RETURN(Graph answer, AnswerGraph(graph, signature_));
  if (run_ && options_.ema > 0) answer = ReadAverages(std::move(answer));
  std::vector<NamedGraph> graphs = {NamedGraph{"infer", std::move(answer)}};
  RIDGE_ASSIGN_OR_RETURN(const DType operands, ProductOperands(options_.precision, *machine_));
  RIDGE_ASSIGN_OR_RETURN(std::vector<std::string> placed, PlacedOn(*machine_, options_, graph));
  RIDGE_ASSIGN_OR_RETURN(Program program,
                         PlanGraphs(graph.name, std::move(graphs), options_.passes, operands,
                                    *machine_, Offload::kNone, std::move(placed)));
  RIDGE_ASSIGN_OR_RETURN(executor_, Executor::Create(std::move(program), *machine_->backend));
  RIDGE_RETURN_IF_ERROR(executor_->transfers().Initialize(options_.seed));
  return LoadWeights();
}

Status Predictor::LoadWeights() {
  if (!run_) return Status();
  RIDGE_ASSIGN_OR_RETURN(const LoadedCheckpoint loaded,
                         run_->checkpoints().Load(request_.checkpoint, CollectTensors(*executor_),
                                                  LoadMode::kWeights));
  step_ = loaded.state.step;
  warnings_ = loaded.warnings;
  return Status();
}

Status Predictor::Run(const SourcePtr& source, const Take& take) {
  RIDGE_CHECK(executor_ != nullptr, "Prepare comes before Run");
  BatchSpec spec;
  for (const Field& input : inputs_) spec.inputs.push_back({input.name, input.type});
  spec = AsPlanned(executor_->program(), std::move(spec));
  LoaderOptions loading;
  loading.batch = batch_;
  loading.workers = ReadWorkers(options_);
  loading.shuffle = loading.drop_last = false;
  loading.epochs = 1;
  RIDGE_ASSIGN_OR_RETURN(const auto loader,
                         BatchLoader::Create(source, spec, loading, InputSlots(*executor_, spec)));
  ScalarInputs scalars(*executor_, DType::kF32, batch_);
  const int step = executor_->StepIndex("infer");
  const TensorType& type = executor_->OutputType(step, signature_.output);
  std::vector<double> output(static_cast<size_t>(outputs_));
  for (;;) {
    RIDGE_ASSIGN_OR_RETURN(const LoadedBatch batch, loader->Next());
    if (batch.end()) return Status();
    scalars.Write(batch.slot, /*lr=*/0, /*updates=*/0, {options_.seed, 0});
    RIDGE_RETURN_IF_ERROR(executor_->Run(step, batch.slot));
    RIDGE_ASSIGN_OR_RETURN(const void* data,
                           executor_->transfers().Output(step, signature_.output));
    for (int64_t row = 0; row < batch.valid_samples; ++row) {
      for (int64_t i = 0; i < outputs_; ++i)
        output[static_cast<size_t>(i)] = LoadAsDouble(type.dtype, data, row * outputs_ + i);
      RIDGE_RETURN_IF_ERROR(take(batch.batch_index * batch_ + row, output));
    }
    loader->Release(batch.slot);
  }
}

std::vector<double> Answer(const Signature& signature, const std::vector<double>& output) {
  if (signature.kind == AnswerKind::kNumber || signature.kind == AnswerKind::kText) return output;
  if (signature.kind == AnswerKind::kYesNo) {
    const double p = signature.scores ? 1 / (1 + std::exp(-output[0])) : output[0];
    return {1 - p, p};
  }
  if (!signature.scores) return output;
  const double most = *std::max_element(output.begin(), output.end());
  std::vector<double> probabilities;
  for (const double score : output) probabilities.push_back(std::exp(score - most));
  const double sum = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  for (double& p : probabilities) p /= sum;
  return probabilities;
}

std::string SpelledText(const Signature& signature, const std::vector<double>& output) {
  const std::vector<int64_t> best(output.begin(), output.end());
  const Spelling spelling(*signature.preprocessing.spelling);
  return PlainTranscript(spelling.Read(CollapseFrames(best, signature.blank)), /*lower=*/false);
}

std::vector<int64_t> Largest(const std::vector<double>& probabilities, int64_t count) {
  std::vector<int64_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto at = [&](int64_t i) { return probabilities[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return at(a) > at(b); });
  order.resize(static_cast<size_t>(std::min(count, static_cast<int64_t>(order.size()))));
  return order;
}

std::string ClassName(const Signature& signature, int64_t index) {
  const std::vector<std::string>& names = signature.preprocessing.classes;
  if (index < static_cast<int64_t>(names.size())) return names[static_cast<size_t>(index)];
  if (signature.kind == AnswerKind::kYesNo) return index == 0 ? "no" : "yes";
  return fmt::format("class {}", index);
}

}  // namespace ridge

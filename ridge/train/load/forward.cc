#include "ridge/train/load/forward.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ridge/core/units.h"
#include "ridge/graph/gradient_reach.h"
#include "ridge/learn/frozen_weights.h"
#include "ridge/learn/inference_form.h"
#include "ridge/learn/lora.h"
#include "ridge/learn/loss.h"
#include "ridge/learn/master_params.h"
#include "ridge/learn/optimizers/rates.h"
#include "ridge/learn/precision_for.h"
#include "ridge/train/load/class_weights.h"
#include "ridge/train/store/preprocessing_file.h"

namespace ridge {
namespace {

// Adds a note about the rounding, which the loss does not show.
Status KeepMasterParams(Forward& forward) {
  const std::vector<std::string> names = HalfParameters(forward.graph);
  if (names.empty()) return Status();
  const char* type = DTypeName(forward.graph.type(forward.graph.FindValue(names[0])).dtype);
  forward.notes.notes.push_back(
      fmt::format("kept and updated in f32, and rounded to {} for each step: {}. Their gradients "
                  "are computed as the model computes, with no loss scale",
                  type, FormatCountOf(static_cast<int64_t>(names.size()), "parameter")));
  RIDGE_ASSIGN_OR_RETURN(forward.graph, WithMasterParams(std::move(forward.graph)));
  return Status();
}

Result<ModelRequest> RequestFor(const TrainOptions& options, const std::string& model) {
  ModelRequest request;
  request.model = model.empty() ? options.model : model;
  request.batch = options.batch;
  RIDGE_ASSIGN_OR_RETURN(request.dims, ParseDims(options.dims));
  request.weights = options.weights;
  request.weights_skip = options.weights_skip;
  request.trained = {options.freeze, options.trainable};
  request.batch_norm_frozen = options.batch_norm == "frozen";
  request.use_file_optimizer = options.loss.empty();
  return request;
}

// `run`: the run whose preprocessing is repeated, if it is one.  A run that keeps none has seen
// tables as they are, and held out samples by its seed.
Result<DataOptions> DataOptionsFor(const TrainOptions& options, const std::string& run) {
  DataOptions result;
  RIDGE_ASSIGN_OR_RETURN(const BadRecordsPolicy policy,
                         BadRecordsPolicy::Parse(options.bad_records));
  result.bad_records = std::make_shared<BadRecords>(policy);
  if (Run::Exists(run)) {
    RIDGE_ASSIGN_OR_RETURN(const Run opened, Run::Open(run));
    RIDGE_ASSIGN_OR_RETURN(result.preprocessing, PreprocessingOf(opened));
    result.plain_tables = result.preprocessing == nullptr;
  }
  result.seed = options.seed;
  const double fraction = HeldOutFraction(options.validation).value_or(0);
  if (fraction > 0 && fraction < 1 && !result.plain_tables) result.hold_out = fraction;
  return result;
}

// Freezes parameters that no gradient reaches: no optimizer moments, no weight decay.  Fails with
// kInvalidModel when no parameter is left.
Status FreezeUnreached(const ForwardInfo& facts, Graph& graph, ModelNotes& notes) {
  const std::vector<ValueId> trained = TrainableParameters(graph);
  const GradientReach reach = FindGradientReach(graph, facts.loss, trained);
  for (const std::vector<ValueId>* group : {&reach.unused, &reach.blocked}) {
    for (ValueId id : *group) graph.mutable_value(id).trainable = false;
  }
  notes.unreached = DescribeGradientReach(graph, reach);
  if (trained.empty() || reach.unused.size() + reach.blocked.size() < trained.size())
    return Status();
  return Status(ErrorCode::kInvalidModel, fmt::format("{}: nothing to train: {}", graph.name,
                                                      fmt::join(notes.unreached, "; ")));
}

// The first option that contradicts the model's own training step; "" when none does.
std::string FirstOptionOwnStepForbids(const TrainOptions& options, const Forward& forward) {
  const TrainOptions none;
  const OptimizerOptions &asked = options.optimizer, &usual = none.optimizer;
  if (asked.name != usual.name) return "optimizer";
  if (asked.momentum != usual.momentum) return "momentum";
  if (asked.weight_decay.has_value()) return "weight-decay";
  if (asked.state != usual.state) return "optimizer-state";
  if (options.accumulate != 1) return "accumulate";
  if (options.clip_norm > 0) return "clip-norm";
  if (!options.freeze.empty()) return "freeze";
  if (!options.trainable.empty()) return "trainable";
  if (options.batch_norm != none.batch_norm) return "batch-norm";
  if (options.label_smoothing != none.label_smoothing) return "label-smoothing";
  if (!options.class_weights.empty()) return "class-weights";
  if (options.focal != none.focal) return "focal";
  if (options.dice != none.dice) return "dice";
  if (!options.lora.empty()) return "lora";
  if (!options.frozen_weights.empty()) return "frozen-weights";
  if (!options.lr_for.empty()) return "lr-for";
  if (!options.precision_for.empty()) return "precision-for";
  if (options.ema != none.ema) return "ema";
  if (!FixedRate(forward)) return "";
  if (options.lr != none.lr && options.lr != forward.notes.own_rate) return "lr";
  if (options.schedule != none.schedule) return "schedule";
  return options.warmup != none.warmup ? "warmup" : "";
}

Status CheckOwnStep(const TrainOptions& options, const Forward& forward) {
  if (!forward.notes.file_has_optimizer) return Status();
  const std::string name = FirstOptionOwnStepForbids(options, forward);
  if (name.empty()) return Status();
  return InvalidArgument(
      fmt::format("{}: brings its own training step, which --{} cannot change. hint: "
                  "leave it out, or give --loss: then the step is ridge's",
                  options.model, name));
}

Result<Graph> WithAdapters(const TrainOptions& options, Graph graph, ModelNotes& notes) {
  RIDGE_ASSIGN_OR_RETURN(const LoraOptions lora, ParseLora(options.lora));
  const size_t before = graph.ValuesOfKind(ValueKind::kParameter).size();
  RIDGE_ASSIGN_OR_RETURN(graph, WithLora(graph, lora, options.trainable));
  const size_t adapters = (graph.ValuesOfKind(ValueKind::kParameter).size() - before) / 2;
  notes.notes.push_back(
      fmt::format("adapters of rank {} beside {}: of {} parameters only theirs are trained{}",
                  lora.rank, FormatCountOf(static_cast<int64_t>(adapters), "weight"), graph.name,
                  options.trainable.empty() ? "" : ", and those of --trainable"));
  return graph;
}

Result<Graph> WithSmallFrozenWeights(const TrainOptions& options, Graph graph, ModelNotes& notes) {
  RIDGE_ASSIGN_OR_RETURN(const FrozenWeightsOptions frozen,
                         ParseFrozenWeights(options.frozen_weights));
  if (!frozen.nf4) return graph;
  int64_t kept = 0;
  RIDGE_ASSIGN_OR_RETURN(graph, WithFrozenWeights(graph, frozen, &kept));
  notes.notes.push_back(fmt::format("{} frozen weight{} kept in 4 bits a number (NF4)", kept,
                                    kept == 1 ? " is" : "s are"));
  return graph;
}

Result<Graph> WithMarkedProducts(const TrainOptions& options, Graph graph) {
  if (options.precision_for.empty()) return graph;
  RIDGE_ASSIGN_OR_RETURN(const std::vector<PrecisionFor> patterns,
                         ParsePrecisionFor(options.precision_for, options.precision));
  return WithPrecisionFor(graph, patterns);
}

// The model with what the options freeze of it, and with adapters.
Result<Graph> Adapted(const TrainOptions& options, Graph graph, ModelNotes& notes) {
  if (options.batch_norm == "frozen") {
    RIDGE_ASSIGN_OR_RETURN(graph, WithFrozenBatchNorm(graph));
  }
  if (!options.lora.empty()) {
    RIDGE_ASSIGN_OR_RETURN(graph, WithAdapters(options, std::move(graph), notes));
  }
  return WithSmallFrozenWeights(options, std::move(graph), notes);
}

// Opens the data, unless they adapt to the model, and tells the request what they determine.
Status TakeData(const TrainOptions& options, const std::string& run, ModelRequest& request,
                Forward& forward) {
  if (options.data.empty()) return Status();
  RIDGE_ASSIGN_OR_RETURN(const DataOptions data_options,
                         DataOptionsFor(options, run.empty() ? request.model : run));
  forward.preprocessing = data_options.preprocessing;
  RIDGE_ASSIGN_OR_RETURN(const std::optional<DataFacts> known,
                         FactsBeforeModel(options.data, data_options));
  if (known) {
    request.sizes = known->sizes;
    request.fields = known->fields;
    return Status();
  }
  RIDGE_ASSIGN_OR_RETURN(forward.data, OpenData(options.data, data_options));
  request.sizes = forward.data->sizes;
  request.fields = forward.data->train->fields();
  return Status();
}

}  // namespace

std::optional<double> FixedRate(const Forward& forward) {
  if (!forward.notes.file_has_optimizer || forward.graph.FindValue(kLrInput) != kNoValue)
    return std::nullopt;
  return forward.notes.own_rate.value_or(0);
}

namespace {

// Loads the graph, and does to it what the options ask.  `forward` has the data.
Status TakeModel(const TrainOptions& options, const ModelRequest& request, Forward& forward) {
  RIDGE_ASSIGN_OR_RETURN(Graph loaded, LoadModel(request, &forward.notes));
  if (IsGraphFile(options.model)) forward.source = loaded;
  if (!forward.notes.file_has_optimizer) {
    RIDGE_ASSIGN_OR_RETURN(loaded, Adapted(options, std::move(loaded), forward.notes));
  }
  RIDGE_ASSIGN_OR_RETURN(forward.graph, WithLoss(std::move(loaded), options.loss, request.fields));
  RIDGE_ASSIGN_OR_RETURN(forward.loss_shape, LossShapeOf(options));
  if (!forward.notes.file_has_optimizer) {
    RIDGE_ASSIGN_OR_RETURN(forward.graph,
                           WithLossShape(std::move(forward.graph), forward.loss_shape));
    RIDGE_RETURN_IF_ERROR(KeepMasterParams(forward));
    RIDGE_ASSIGN_OR_RETURN(forward.graph, WithMarkedProducts(options, std::move(forward.graph)));
    RIDGE_ASSIGN_OR_RETURN(const auto rates, ParseRateFactors(options.lr_for));
    RIDGE_RETURN_IF_ERROR(CheckRateFactors(rates, forward.graph));
  }
  RIDGE_ASSIGN_OR_RETURN(forward.facts, InspectForward(forward.graph));
  if (!forward.notes.file_has_optimizer)
    RIDGE_RETURN_IF_ERROR(FreezeUnreached(forward.facts, forward.graph, forward.notes));
  return CheckOwnStep(options, forward);
}

}  // namespace

Result<Forward> LoadForward(const TrainOptions& options, const std::string& model,
                            const std::string& run) {
  Forward forward;
  RIDGE_ASSIGN_OR_RETURN(ModelRequest request, RequestFor(options, model));
  RIDGE_RETURN_IF_ERROR(TakeData(options, run, request, forward));
  RIDGE_RETURN_IF_ERROR(TakeModel(options, request, forward));
  if (forward.facts.batch == options.batch) return forward;
  return InvalidArgument(
      fmt::format("--batch is {}; the graph '{}' is written for {}. hint: name the "
                  "dimension: f32[batch, ...]",
                  options.batch, forward.graph.name, forward.facts.batch));
}

Result<Forward> LoadForwardOf(const TrainOptions& options, const Forward& like) {
  Forward forward;
  RIDGE_ASSIGN_OR_RETURN(ModelRequest request, RequestFor(options, options.model));
  if (like.data) {
    request.sizes = like.data->sizes;
    request.fields = like.data->train->fields();
  }
  RIDGE_RETURN_IF_ERROR(TakeModel(options, request, forward));
  return forward;
}

}  // namespace ridge

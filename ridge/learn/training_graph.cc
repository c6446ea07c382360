#include "ridge/learn/training_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/learn/accumulators.h"
#include "ridge/learn/averages.h"
#include "ridge/learn/classifier.h"
#include "ridge/learn/clipping.h"
#include "ridge/learn/mixed_labels.h"
#include "ridge/learn/optimizers/moments.h"

namespace ridge {
namespace {

// f64 for a f64 model, to match PyTorch's f64 results.
UpdateInputs AddUpdateInputs(GraphBuilder& b, DType loss_dtype, LossScale* scale) {
  const DType dtype = loss_dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  UpdateInputs inputs;
  inputs.lr = b.Input(kLrInput, {dtype, {}});
  inputs.step = scale != nullptr ? scale->Step() : b.Input(kStepInput, {DType::kI64, {}});
  return inputs;
}

// The form of each parameter's moments; parameters are those of `forward`, in its order.
std::vector<MomentForm> FormsOfMoments(const Graph& forward, const OptimizerOptions& options) {
  std::vector<MomentForm> forms;
  for (ValueId id : TrainableParameters(forward))
    forms.push_back(FormOfMoments(options, forward, id));
  return forms;
}

// The inputs of each parameter's update; parameters of one factor share its node.
class ParameterRates {
 public:
  ParameterRates(GraphBuilder& b, const UpdateInputs& inputs,
                 const std::vector<RateFactor>& factors)
      : b_(b), inputs_(inputs), factors_(factors) {}

  UpdateInputs Of(Value param) {
    if (!b_.ok() || factors_.empty()) return inputs_;
    const double factor = RateFactorOf(factors_, b_.graph().value(param.id).name);
    if (factor == 1) return inputs_;
    const auto [found, first] = by_factor_.try_emplace(factor, inputs_);
    if (first) found->second.lr = inputs_.lr * factor;
    return found->second;
  }

 private:
  GraphBuilder& b_;
  const UpdateInputs& inputs_;
  const std::vector<RateFactor>& factors_;
  std::map<double, UpdateInputs> by_factor_;
};

// Clips if clip_norm is set, then adds one update per parameter, and the averages.  `params` are
// those of `forward`; with a `scale`, which may be null, `grads` are of the scaled loss.
Status AppendOptimizer(GraphBuilder& b, const Graph& forward, const std::vector<Value>& params,
                       std::vector<Value> grads, DType loss_dtype, LossScale* scale,
                       const TrainingGraphOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Optimizer* optimizer, FindOptimizer(options.optimizer));
  Value finite, inverse;
  if (scale != nullptr) {
    finite = LossScale::AllFinite(grads);
    inverse = scale->Inverse();
    LossScale::SelectStatistics(b, finite);
  }
  if (options.clip_norm > 0) {
    const Value norm = ClipByGlobalNorm(b, options.clip_norm, grads, inverse);
    b.Output("grad_norm", norm);
  }
  UpdateInputs inputs = AddUpdateInputs(b, loss_dtype, scale);
  inputs.apply = finite;
  if (options.clip_norm == 0) inputs.grad_scale = inverse;
  const std::vector<MomentForm> forms = FormsOfMoments(forward, options.optimizer);
  if (std::find(forms.begin(), forms.end(), MomentForm::kRounded) != forms.end())
    inputs.rounding = b.Input(kRoundingInput, {DType::kI64, {2}});
  ParameterRates rates(b, inputs, options.rates);
  for (size_t i = 0; i < params.size(); ++i) {
    UpdateInputs own = rates.Of(params[i]);
    own.form = forms[i];
    optimizer->append(b, params[i], grads[i], own, options.optimizer);
  }
  if (options.average_decay > 0) AppendAverages(b, options.average_decay, inputs.step, finite);
  if (scale != nullptr) scale->Append(finite);
  return b.status();
}

// The forward graph, its gradients, and the outputs that both `train` and `micro` have.
struct Differentiated {
  std::unique_ptr<GraphBuilder> builder;  // in one place: the values point to it
  std::vector<Value> params;
  std::vector<Value> grads;  // of the scaled loss, where there is a scale
  DType loss_dtype = DType::kF32;
  std::optional<LossScale> scale = std::nullopt;

  LossScale* scale_or_null() { return scale ? &*scale : nullptr; }
};

Result<Differentiated> Differentiate(const Graph& forward, const TrainingGraphOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const ForwardInfo facts, InspectForward(forward));
  Differentiated d{std::make_unique<GraphBuilder>(forward), {}, {}};
  GraphBuilder& b = *d.builder;
  for (ValueId id : TrainableParameters(forward)) d.params.push_back(b.At(id));
  if (d.params.empty()) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("{}: no trainable parameter", forward.name));
  }
  d.loss_dtype = forward.type(facts.loss).dtype;
  b.graph().ClearOutputs();
  const bool part = options.slices > 1 && options.mean_of_slices;
  Value loss = b.At(facts.loss);
  if (options.mixes_labels) {
    RIDGE_ASSIGN_OR_RETURN(loss, MixedLoss(b, facts, options.label_smoothing));
  }
  if (part) loss = loss * (1.0 / static_cast<double>(options.slices));
  if (options.loss_scale) d.scale.emplace(b, *options.loss_scale);
  const Value start = d.scale ? d.scale->Scaled(loss) : loss;
  RIDGE_ASSIGN_OR_RETURN(d.grads, AppendGradients(b, start, d.params));
  b.Output("loss", loss);
  if (facts.logits != kNoValue) b.Output("correct", CorrectSamples(b, facts));
  RIDGE_RETURN_IF_ERROR(b.status());
  return d;
}

std::string AccumulatorName(const std::string& param) { return param + ".grad_sum"; }

Value Accumulator(GraphBuilder& b, Value param) {
  const std::string name = AccumulatorName(b.graph().value(param.id).name);
  return b.State(name, param.type(), Init::Zeros(), ValueRole::kGradient);
}

Result<NamedGraph> BuildTrain(const Graph& forward, const TrainingGraphOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(Differentiated d, Differentiate(forward, options));
  Accumulators sums(*d.builder, options.slices, options.share, options.wire);
  for (size_t i = 0; i < d.params.size(); ++i)
    d.grads[i] =
        sums.Add(AccumulatorName(d.builder->graph().value(d.params[i].id).name), d.grads[i]);
  sums.AddOutputs();
  RIDGE_RETURN_IF_ERROR(AppendOptimizer(*d.builder, forward, d.params, d.grads, d.loss_dtype,
                                        d.scale_or_null(), options));
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, std::move(*d.builder).Build());
  RIDGE_ASSIGN_OR_RETURN(Graph needed, KeepNeeded(graph));
  NamedGraph train = sums.Finish("train", std::move(needed));
  train.may_recompute = true;
  return train;
}

// Whether the graph updates more than sums.
bool HasStatistics(const Graph& graph) {
  const std::vector<GraphUpdate>& updates = graph.updates();
  return std::any_of(updates.begin(), updates.end(), [&](const GraphUpdate& update) {
    return graph.value(update.variable).role != ValueRole::kGradient;
  });
}

// The accumulators sum over micro-batches and slices.  Statistics are those of the micro-batches
// up to the first whose gradients are not finite.
Result<NamedGraph> BuildMicro(const Graph& forward, const TrainingGraphOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(Differentiated d, Differentiate(forward, options));
  Accumulators sums(*d.builder, options.slices);
  sums.AddOutputs();
  std::vector<Value> totals;
  for (size_t i = 0; i < d.params.size(); ++i) {
    const Value sum = Accumulator(*d.builder, d.params[i]);
    totals.push_back(sum + d.grads[i]);
    d.builder->Update(sum, totals.back());
  }
  if (d.scale && HasStatistics(d.builder->graph()))
    LossScale::SelectStatistics(*d.builder, LossScale::AllFinite(totals));
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, std::move(*d.builder).Build());
  RIDGE_ASSIGN_OR_RETURN(Graph needed, KeepNeeded(graph));
  NamedGraph micro = sums.Finish("micro", std::move(needed));
  micro.may_recompute = true;
  return micro;
}

// A parameter of `forward` in another graph: the same persistent value.
Value SameParameter(GraphBuilder& b, const ValueInfo& info) {
  const Value param = b.Parameter(info.name, info.type, info.init);
  if (b.ok()) b.graph().mutable_value(param.id).role = info.role;
  return param;
}

Result<NamedGraph> BuildUpdate(const Graph& forward, const TrainingGraphOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const ForwardInfo facts, InspectForward(forward));
  GraphBuilder b(forward.name);
  std::vector<Value> params, grads;
  for (ValueId id : TrainableParameters(forward)) {
    params.push_back(SameParameter(b, forward.value(id)));
    const Value sum = Accumulator(b, params.back());
    grads.push_back(sum * (1.0 / static_cast<double>(options.accumulate)));
    if (!b.ok()) return b.status();
    b.Update(sum, Expand(ScalarLike(sum, 0), sum.dims()));
  }
  std::optional<LossScale> scale;
  if (options.loss_scale) scale.emplace(b, *options.loss_scale);
  RIDGE_RETURN_IF_ERROR(AppendOptimizer(b, forward, params, std::move(grads),
                                        forward.type(facts.loss).dtype, scale ? &*scale : nullptr,
                                        options));
  RIDGE_ASSIGN_OR_RETURN(Graph graph, std::move(b).Build());
  return NamedGraph{"update", std::move(graph)};
}

Status CannotScale(const Graph& forward) {
  return Status(ErrorCode::kUnsupported,
                fmt::format("{}: brings its own training step, to which the loss scale of "
                            "--precision f16 cannot be added. hint: --precision bf16, or --loss: "
                            "then the step is ridge's",
                            forward.name));
}

// The training step of a graph that has its own, with the outputs that the trainer reads.
Result<NamedGraph> BuildOwnStep(const Graph& forward, const ForwardInfo& facts,
                                const TrainingGraphOptions& options) {
  if (options.mixes_labels) return CannotMix(forward);
  if (options.loss_scale) return CannotScale(forward);
  if (options.accumulate != 1 || options.clip_norm > 0) {
    return Status(ErrorCode::kInvalidArgument,
                  fmt::format("{}: brings its own training step, to which --{} cannot be added. "
                              "hint: leave it out, or --loss: then the step is ridge's",
                              forward.name, options.accumulate != 1 ? "accumulate" : "clip-norm"));
  }
  GraphBuilder b(forward);
  b.graph().ClearOutputs();
  b.Output("loss", b.At(facts.loss));
  if (facts.logits != kNoValue) b.Output("correct", CorrectSamples(b, facts));
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, b.Build());
  RIDGE_ASSIGN_OR_RETURN(Graph needed, KeepNeeded(graph));
  NamedGraph train{"train", std::move(needed)};
  train.may_recompute = true;
  return train;
}

}  // namespace

std::vector<ValueId> TrainableParameters(const Graph& graph) {
  std::vector<ValueId> params = graph.ValuesOfKind(ValueKind::kParameter);
  std::erase_if(params, [&](ValueId id) { return !graph.value(id).trainable; });
  return params;
}

Result<std::vector<NamedGraph>> BuildTrainingGraphs(const Graph& forward,
                                                    const TrainingGraphOptions& options) {
  std::vector<NamedGraph> graphs;
  RIDGE_ASSIGN_OR_RETURN(const ForwardInfo facts, InspectForward(forward));
  if (facts.has_optimizer) {
    RIDGE_ASSIGN_OR_RETURN(NamedGraph train, BuildOwnStep(forward, facts, options));
    graphs.push_back(std::move(train));
    return graphs;
  }
  if (options.accumulate == 1) {
    RIDGE_ASSIGN_OR_RETURN(NamedGraph train, BuildTrain(forward, options));
    graphs.push_back(std::move(train));
    return graphs;
  }
  RIDGE_ASSIGN_OR_RETURN(NamedGraph micro, BuildMicro(forward, options));
  RIDGE_ASSIGN_OR_RETURN(NamedGraph update, BuildUpdate(forward, options));
  graphs.push_back(std::move(micro));
  graphs.push_back(std::move(update));
  return graphs;
}

}  // namespace ridge

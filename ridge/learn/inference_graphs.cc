// BuildEvalGraph and BuildInferenceGraph: the graphs without updates.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ridge/graph/batch_axis.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/reach.h"
#include "ridge/learn/accumulators.h"
#include "ridge/learn/classifier.h"
#include "ridge/learn/ctc.h"
#include "ridge/learn/inference_form.h"
#include "ridge/learn/per_sample_loss.h"
#include "ridge/learn/training_graph.h"

namespace ridge {
namespace {

// sum(weight * x), in the type of x.
Value WeightedSum(Value x, Value weight) { return Sum(x * Cast(weight, x.dtype())); }

// The values that are computed from these inputs; names that the graph lacks are skipped.
ValueSet ComputedFrom(const Graph& graph, const std::vector<std::string>& inputs) {
  std::vector<ValueId> ids;
  for (const std::string& name : inputs) {
    if (const ValueId id = graph.FindValue(name); id != kNoValue) ids.push_back(id);
  }
  return Descendants(graph, ids);
}

// Outputs are sums over the samples, or have a row for each.
Result<NamedGraph> SliceEval(const Graph& eval, int64_t slices,
                             const std::optional<SliceShare>& share) {
  std::vector<ValueId> samples;
  for (ValueId id : eval.ValuesOfKind(ValueKind::kInput)) {
    if (eval.value(id).name != kRngInput) samples.push_back(id);
  }
  RIDGE_ASSIGN_OR_RETURN(const BatchAxes axes, FindBatchAxes(eval, OutputValues(eval), samples));
  RIDGE_ASSIGN_OR_RETURN(Graph graph, SliceGraph(eval, axes, slices));
  GraphBuilder b(std::move(graph));
  Accumulators total(b, slices, share);
  total.AddOutputs();
  RIDGE_ASSIGN_OR_RETURN(Graph built, b.Build());
  return total.Finish("eval", std::move(built));
}

}  // namespace

namespace {

// Tokens are written of what is none: sound, pictures.
bool WritesWhatItHears(const Graph& graph, const ForwardInfo& facts) {
  if (facts.logits == kNoValue || graph.type(facts.label).rank() != 2) return false;
  return std::any_of(facts.data_inputs.begin(), facts.data_inputs.end(),
                     [&](ValueId id) { return IsFloat(graph.type(id).dtype); });
}

// What metrics are counted from on the host, by sample.
void AddOutputsBySample(GraphBuilder& b, const ForwardInfo& facts) {
  const bool one_label = facts.logits != kNoValue && b.graph().type(facts.label).rank() == 1 &&
                         b.graph().type(facts.logits).rank() == 2;
  if (one_label) b.Output("logits", b.At(facts.logits));
  const bool pixels =
      facts.logits != kNoValue && b.graph().type(facts.label).rank() == kPixelLabelRank;
  if (pixels) b.Output("said", Op("argmax", {b.At(facts.logits)}, {{"axis", -1}}));
  if (WritesWhatItHears(b.graph(), facts))
    b.Output("written", Op("argmax", {b.At(facts.logits)}, {{"axis", -1}}));
  if (facts.prediction != kNoValue) b.Output("prediction", b.At(facts.prediction));
  if (facts.detection) b.Output("detections", b.At(facts.detection->detections));
  if (facts.ctc) {
    b.Output("spelled",
             BestClasses(b, b.At(facts.ctc->logits), b.At(facts.ctc->lengths), facts.ctc->blank));
  }
}

Result<Graph> EvalGraph(const Graph& forward, bool by_sample) {
  RIDGE_ASSIGN_OR_RETURN(const ForwardInfo facts, InspectForward(forward));
  RIDGE_ASSIGN_OR_RETURN(Graph inference, InferenceForm(forward));
  RIDGE_ASSIGN_OR_RETURN(const ForwardInfo here, InspectForward(inference));
  GraphBuilder b(std::move(inference));
  const Value loss = b.At(here.eval_loss), logits = b.At(here.logits), label = b.At(here.label);
  b.graph().ClearOutputs();
  RIDGE_ASSIGN_OR_RETURN(const SampleLosses each, PerSampleLoss(b, loss, facts.batch));
  const Value weight = b.Input(kWeightInput, {DType::kF32, {facts.batch}}, {"batch"});
  b.Output("loss_sum", WeightedSum(each.loss, weight));
  if (each.weight.valid()) b.Output("loss_weight_sum", WeightedSum(each.weight, weight));
  if (here.logits != kNoValue && here.ignored_label) {
    const LabelHits hits = CountHits(b, logits, label, *here.ignored_label);
    b.Output("correct_sum", WeightedSum(hits.right, weight));
    b.Output("label_sum", WeightedSum(hits.counted, weight));
  } else if (here.logits != kNoValue) {
    b.Output("correct_sum", WeightedSum(IsCorrect(b, logits, label), weight));
  }
  b.Output("weight_sum", Sum(weight));
  if (by_sample) AddOutputsBySample(b, here);
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, b.Build());
  return KeepNeeded(graph);
}

}  // namespace

Result<NamedGraph> BuildEvalGraph(const Graph& forward, int64_t slices,
                                  const std::optional<SliceShare>& share) {
  RIDGE_ASSIGN_OR_RETURN(Graph graph, EvalGraph(forward, /*by_sample=*/true));
  if (slices > 1) {
    Result<NamedGraph> sliced = SliceEval(graph, slices, share);
    if (sliced.ok()) return sliced;
    // What is said of single samples may couple them where the sums do not.
    RIDGE_ASSIGN_OR_RETURN(const Graph sums, EvalGraph(forward, /*by_sample=*/false));
    sliced = SliceEval(sums, slices, share);
    if (sliced.ok() || share) return sliced;
  }
  return NamedGraph{"eval", std::move(graph)};
}

Result<NamedGraph> BuildInferenceGraph(const Graph& forward,
                                       const std::vector<std::string>& missing) {
  // First, so that inputs that only training reads (a dropout's random numbers) are not required.
  RIDGE_ASSIGN_OR_RETURN(const Graph form, InferenceForm(forward));
  const ValueSet lost = ComputedFrom(form, missing);
  Graph wanted = form;
  wanted.ClearOutputs();
  for (const GraphOutput& output : form.outputs()) {
    if (!lost[static_cast<size_t>(output.value)]) wanted.AddOutput(output.name, output.value);
  }
  if (wanted.outputs().empty()) {
    return Status(ErrorCode::kInvalidArgument,
                  fmt::format("{}: every output needs an input that is not given: {}", forward.name,
                              fmt::join(missing, ", ")));
  }
  RIDGE_ASSIGN_OR_RETURN(Graph graph, KeepNeeded(wanted));
  return NamedGraph{"infer", std::move(graph)};
}

}  // namespace ridge

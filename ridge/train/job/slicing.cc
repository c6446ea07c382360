#include "ridge/train/job/slicing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "ridge/graph/batch_axis.h"
#include "ridge/graph/reach.h"
#include "ridge/learn/averages.h"
#include "ridge/learn/loss_shape.h"
#include "ridge/train/job/job.h"

namespace ridge {
namespace {

constexpr size_t kMostNodes = 2000;  // of a forward graph: above, planning it again takes seconds

bool ReadsCrossEntropy(const Graph& graph, ValueId loss) {
  const ValueSet needed = Ancestors(graph, {loss});
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    return node.op->name == "softmax_cross_entropy" && needed[static_cast<size_t>(node.outputs[0])];
  });
}

// The graph with the outputs that training reads, and nothing else; a loss without a cross entropy,
// such as Dice alone, keeps that of evaluations, by which the labels are found.
Graph LossAndLogits(const Graph& forward, const ForwardInfo& facts) {
  Graph graph = forward;
  graph.ClearOutputs();
  graph.AddOutput("loss", facts.loss);
  if (facts.logits != kNoValue) graph.AddOutput("logits", facts.logits);
  if (facts.eval_loss != facts.loss && !ReadsCrossEntropy(forward, facts.loss))
    graph.AddOutput(kEvalLossOutput, facts.eval_loss);
  return graph;
}

class TrainingJobGraphs : public JobGraphs {
 public:
  TrainingJobGraphs(const SearchRequest& request, const PassSelection& passes)
      : q_(request), forward_passes_(ForwardPasses(passes)) {}

  Result<std::vector<NamedGraph>> Training(int64_t slices) override {
    RIDGE_ASSIGN_OR_RETURN(const Graph* simple, Simplified(slices));
    TrainingGraphOptions options;
    options.optimizer = q_.options.optimizer;
    RIDGE_ASSIGN_OR_RETURN(options.rates, ParseRateFactors(q_.options.lr_for));
    options.average_decay = q_.options.ema;
    options.clip_norm = q_.options.clip_norm;
    options.accumulate = q_.options.accumulate;
    options.slices = slices;
    options.mixes_labels = MixesLabels(q_.options);
    options.label_smoothing = q_.options.label_smoothing;
    if (slices > 1)
      options.mean_of_slices = axes_->axes[static_cast<size_t>(q_.facts.loss)] == kPartialMean;
    return BuildTrainingGraphs(*simple, options);
  }

  Result<std::vector<NamedGraph>> Evaluation(int64_t slices) override {
    std::vector<NamedGraph> graphs;
    if (!q_.with_eval) return graphs;
    RIDGE_ASSIGN_OR_RETURN(const Graph* whole, Simplified(1));
    RIDGE_ASSIGN_OR_RETURN(NamedGraph eval, BuildEvalGraph(*whole, slices));
    if (q_.options.ema > 0) eval.graph = ReadAverages(std::move(eval.graph));
    graphs.push_back(std::move(eval));
    return graphs;
  }

  // Fails with kUnsupported when the graph couples samples.
  Status FindAxes() {
    if (axes_) return Status();
    RIDGE_ASSIGN_OR_RETURN(axes_, FindBatchAxes(q_.forward, {q_.facts.loss}, q_.facts.data_inputs));
    return Status();
  }

 private:
  // The forward graph of a slice after the passes that pay before differentiation.
  Result<const Graph*> Simplified(int64_t slices) {
    if (const auto known = simplified_.find(slices); known != simplified_.end())
      return &known->second;
    RIDGE_ASSIGN_OR_RETURN(Graph graph, ForwardOf(slices));
    RIDGE_ASSIGN_OR_RETURN(
        graph, RunPasses(std::move(graph), forward_passes_, q_.machine.query().rules()));
    return &simplified_.emplace(slices, std::move(graph)).first->second;
  }

  Result<Graph> ForwardOf(int64_t slices) {
    if (slices == 1) return q_.forward;
    RIDGE_RETURN_IF_ERROR(FindAxes());
    return SliceGraph(LossAndLogits(q_.forward, q_.facts), *axes_, slices);
  }

  const SearchRequest& q_;
  const PassSelection forward_passes_;
  std::optional<BatchAxes> axes_;
  std::map<int64_t, Graph> simplified_;  // by slices
};

}  // namespace

RecomputeLimits LimitsOf(const RecomputeOption& recompute) {
  using Kind = RecomputeOption::Kind;
  if (recompute.kind == Kind::kAll) return {.any = true, .every = true};
  if (recompute.kind == Kind::kFirst) return {.any = true, .most_values = recompute.values};
  if (recompute.kind != Kind::kFull) return {};
  return {.any = true, .enough_bytes = recompute.bytes, .expensive = true};
}

Result<PlanChoice> SearchTrainingPlan(const SearchRequest& q) {
  RIDGE_ASSIGN_OR_RETURN(const int64_t slices, ParseSlices(q.options.slices));
  RIDGE_ASSIGN_OR_RETURN(const RecomputeOption recompute, ParseRecompute(q.options.recompute));
  RIDGE_ASSIGN_OR_RETURN(const PassSelection passes, ParsePassSpec(q.options.passes));
  RIDGE_ASSIGN_OR_RETURN(const DType operands, ProductOperands(q.options.precision, q.machine));
  TrainingJobGraphs graphs(q, passes);
  const bool compare = !q.facts.has_optimizer && q.forward.nodes().size() <= kMostNodes;
  PlanGoals goals;
  goals.slices = std::max<int64_t>(1, slices);
  if (compare && slices == kAutoSlices && q.facts.batch > 1 && graphs.FindAxes().ok())
    goals.slices.reset();
  goals.recompute = LimitsOf(recompute);
  if (compare && recompute.kind == RecomputeOption::Kind::kAuto) goals.recompute.reset();
  if (recompute.kind == RecomputeOption::Kind::kBudget)
    goals.budget = ScratchBudget{recompute.share, recompute.bytes};
  goals.batch = q.facts.batch;
  goals.accumulate = q.options.accumulate;
  goals.limit_bytes = q.limit_bytes;
  const ProgramRecipe recipe = {q.options.model, passes, operands,
                                PlanOptionsFor(passes, q.machine)};
  return SearchPlan(graphs, recipe, q.machine.query(), q.machine.measured(), goals);
}

}  // namespace ridge

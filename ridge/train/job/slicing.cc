#include "ridge/train/job/slicing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "ridge/core/rounding.h"
#include "ridge/graph/batch_axis.h"
#include "ridge/graph/reach.h"
#include "ridge/learn/averages.h"
#include "ridge/learn/host_placement.h"
#include "ridge/learn/loss_shape.h"
#include "ridge/plan/mesh_nodes.h"
#include "ridge/train/job/job.h"
#include "ridge/train/job/mesh_job.h"
#include "ridge/train/job/pipeline_job.h"

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

// Without the output of the logits where the only cross entropy shows them: passes then see all who
// read them.
Graph WithoutLogitsOutput(Graph graph) {
  const Node* found = nullptr;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "softmax_cross_entropy") continue;
    if (found != nullptr) return graph;
    found = &node;
  }
  if (found == nullptr) return graph;
  const ValueId logits = found->inputs[0];
  const std::vector<GraphOutput> outputs = graph.outputs();
  graph.ClearOutputs();
  for (const GraphOutput& output : outputs) {
    if (output.value != logits) graph.AddOutput(output.name, output.value);
  }
  return graph;
}

// A forward graph, cut into slices, after the passes that pay before differentiation.
class SlicedForward {
 public:
  SlicedForward(const Graph& forward, const ForwardInfo& facts, const PassSelection& passes,
                const SearchRequest& request)
      : forward_(forward),
        facts_(facts),
        passes_(ForwardPasses(passes)),
        machine_(request.machine),
        pads_logits_(request.machine.query().rules().MultipleOfProducts().needed > 1 &&
                     !MixesLabels(request.options)),
        order_(request.options.sums == "tree" ? SliceOrder::kInStep : SliceOrder::kOneByOne) {}

  // Fails with kUnsupported when the graph couples samples.
  Status FindAxes() {
    if (axes_) return Status();
    RIDGE_ASSIGN_OR_RETURN(axes_,
                           FindBatchAxes(forward_, {facts_.loss}, facts_.data_inputs, order_));
    return Status();
  }

  // Of a slice.
  Result<const Graph*> Slice(int64_t slices) {
    if (const auto known = simplified_.find(slices); known != simplified_.end())
      return &known->second;
    RIDGE_ASSIGN_OR_RETURN(Graph graph, ForwardOf(slices));
    if (pads_logits_) graph = WithoutLogitsOutput(std::move(graph));
    RIDGE_ASSIGN_OR_RETURN(graph, RunPasses(std::move(graph), passes_, machine_.query().rules()));
    return &simplified_.emplace(slices, std::move(graph)).first->second;
  }

  // Whether the batch's loss is the mean of the slices'.  REQUIRES: FindAxes.
  bool mean_of_slices() const {
    return axes_->axes[static_cast<size_t>(facts_.loss)] == kPartialMean;
  }

 private:
  Result<Graph> ForwardOf(int64_t slices) {
    if (slices == 1) return forward_;
    RIDGE_RETURN_IF_ERROR(FindAxes());
    return SliceGraph(LossAndLogits(forward_, facts_), *axes_, slices);
  }

  const Graph& forward_;
  const ForwardInfo& facts_;
  const PassSelection passes_;
  const Machine& machine_;
  const bool pads_logits_;  // unless labels are mixed: that loss may read all of them
  const SliceOrder order_;
  std::optional<BatchAxes> axes_;
  std::map<int64_t, Graph> simplified_;  // by slices
};

class TrainingJobGraphs : public JobGraphs {
 public:
  // `share`: of a tree.
  TrainingJobGraphs(const SearchRequest& request, const PassSelection& passes,
                    std::optional<SliceShare> share)
      : q_(request),
        share_(std::move(share)),
        whole_(request.forward, request.facts, passes, request) {
    for (const LengthForm& form : request.lengths)
      shorter_.emplace_back(form.graph, form.facts, passes, request);
  }

  // Those of the whole length, then the step of each shorter one.
  Result<std::vector<NamedGraph>> Training(int64_t slices) override {
    RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> graphs, TrainingOf(whole_, slices));
    for (size_t i = 0; i < shorter_.size(); ++i) {
      RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> step, TrainingOf(shorter_[i], slices));
      step.front().name = LengthName(step.front().name, q_.lengths[i].length);
      graphs.push_back(std::move(step.front()));
    }
    return graphs;
  }

  Result<std::vector<NamedGraph>> Evaluation(int64_t slices) override {
    std::vector<NamedGraph> graphs;
    if (!q_.with_eval) return graphs;
    RIDGE_ASSIGN_OR_RETURN(const Graph* whole, whole_.Slice(1));
    RIDGE_ASSIGN_OR_RETURN(NamedGraph eval, BuildEvalGraph(*whole, slices, ShareOf(slices)));
    if (q_.options.ema > 0) eval.graph = ReadAverages(std::move(eval.graph));
    graphs.push_back(std::move(eval));
    return graphs;
  }

  Status FindAxes() { return whole_.FindAxes(); }

 private:
  // None: the slices are all here, in running sums.
  std::optional<SliceShare> ShareOf(int64_t slices) const {
    return slices == 1 ? std::nullopt : share_;
  }

  // Where the loss counts labels of the whole batch, each rank reads all labels, but not samples in
  // place of bad ones, and of one length.
  Status CheckShared(const Graph& slice) const {
    const bool skips = q_.options.bad_records != "fail", lengths = !q_.lengths.empty();
    if (q_.machine.ranks == 1 || (!skips && !lengths)) return Status();
    for (const ValueId id : slice.ValuesOfKind(ValueKind::kInput)) {
      const std::string& name = slice.value(id).name;
      if (!IsWholeInput(name)) continue;
      return Status(
          ErrorCode::kUnsupported,
          fmt::format("{}: the loss counts '{}' of the whole batch, which several devices "
                      "cannot do with --{}. hint: leave it out, or one device",
                      slice.name, name.substr(sizeof(kWholePrefix) - 1),
                      skips ? "bad-records skip" : "bucket"));
    }
    return Status();
  }

  Result<std::vector<NamedGraph>> TrainingOf(SlicedForward& forward, int64_t slices) {
    RIDGE_ASSIGN_OR_RETURN(const Graph* simple, forward.Slice(slices));
    TrainingGraphOptions options;
    options.optimizer = q_.options.optimizer;
    RIDGE_ASSIGN_OR_RETURN(options.rates, ParseRateFactors(q_.options.lr_for));
    options.average_decay = q_.options.ema;
    options.clip_norm = q_.options.clip_norm;
    options.accumulate = q_.options.accumulate;
    // What is known of other programs was fitted without one.
    const std::string& program = q_.machine.software.id;
    if (program.empty() || program == kOwnSoftware) {
      RIDGE_ASSIGN_OR_RETURN(options.loss_scale, LossScaleOf(q_.options));
    }
    options.slices = slices;
    options.share = ShareOf(slices);
    options.wire = q_.options.wire == "bf16" ? DType::kBF16 : DType::kF32;
    RIDGE_RETURN_IF_ERROR(CheckShared(*simple));
    options.mixes_labels = MixesLabels(q_.options);
    options.label_smoothing = q_.options.label_smoothing;
    if (slices > 1) options.mean_of_slices = forward.mean_of_slices();
    return BuildTrainingGraphs(*simple, options);
  }

  const SearchRequest& q_;
  const std::optional<SliceShare> share_;
  SlicedForward whole_;
  std::vector<SlicedForward> shorter_;  // as q_.lengths
};

// Samples of which every batch is a multiple: its slices are equal.
int64_t CommonBatch(const SearchRequest& q) {
  int64_t common = q.facts.batch;
  for (const LengthForm& form : q.lengths) common = std::gcd(common, form.batch);
  return common;
}

Status CheckTree(const SearchRequest& q, int64_t slices) {
  if (q.facts.has_optimizer) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: brings its own training step, which runs in one slice on one "
                              "device. hint: --loss, then the step is ridge's",
                              q.forward.name));
  }
  if (slices >= q.machine.ranks) return Status();
  return InvalidArgument(
      fmt::format("--slices is {}; {} devices need at least one each. hint: --slices {}", slices,
                  q.machine.ranks, FewestSlices(CommonBatch(q), q.machine.ranks)));
}

Status CheckRanks(const SearchRequest& q) {
  const int64_t batch = CommonBatch(q);
  RIDGE_CHECK(q.machine.ranks == 1 || q.options.sums == "tree", "ranks add up in a tree");
  if (batch >= q.machine.ranks) return Status();
  return InvalidArgument(fmt::format(
      "--batch is {}, of all devices together; {} devices need at least a sample each. hint: "
      "--batch {}",
      batch, q.machine.ranks, q.machine.ranks));
}

}  // namespace

namespace {

// Of several ranks, that are shared out in proportion to given parts, or to measured ones.
int64_t EnoughSlices(int64_t ranks, const SharesOption& shares) {
  constexpr int64_t kOfAutomatic = 4, kMost = 8;  // a rank: each further one costs time
  if (ranks > 1 && shares.automatic) return kOfAutomatic * ranks;
  if (ranks == 1 || shares.parts.empty()) return ranks;
  int64_t sum = 0, common = 0;
  for (const int64_t part : shares.parts) {
    sum += part;
    common = std::gcd(common, part);
  }
  return std::clamp(sum / common, ranks, kMost * ranks);
}

}  // namespace

int64_t FewestSlices(int64_t batch, int64_t ranks, const SharesOption& shares) {
  const int64_t least = std::max(ranks, std::min(batch, EnoughSlices(ranks, shares)));
  for (int64_t slices = std::bit_ceil(static_cast<uint64_t>(least)); slices <= batch; slices *= 2) {
    if (batch % slices == 0) return slices;
  }
  return std::max(least, DivisorFrom(least, batch));
}

RecomputeLimits LimitsOf(const RecomputeOption& recompute) {
  using Kind = RecomputeOption::Kind;
  if (recompute.kind == Kind::kAll) return {.any = true, .every = true};
  if (recompute.kind == Kind::kFirst) return {.any = true, .most_values = recompute.values};
  if (recompute.kind != Kind::kFull) return {};
  return {.any = true, .enough_bytes = recompute.bytes, .expensive = true};
}

namespace {

// The graphs of a rank, in one slice.
class MeshJobGraphs : public JobGraphs {
 public:
  MeshJobGraphs(JobGraphs& whole, const Mesh& mesh, const Sharding& sharding)
      : whole_(whole), mesh_(mesh), sharding_(sharding) {}

  // Evaluation too: its variables lie as those of training.
  Result<std::vector<NamedGraph>> Training(int64_t slices) override {
    RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> graphs, whole_.Training(slices));
    training_ = graphs.size();
    RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> evaluation, whole_.Evaluation(slices));
    for (NamedGraph& graph : evaluation) graphs.push_back(std::move(graph));
    RIDGE_ASSIGN_OR_RETURN(parts_, PartitionGraphs(std::move(graphs), mesh_, sharding_));
    const auto end = parts_.graphs.begin() + static_cast<std::ptrdiff_t>(training_);
    return std::vector<NamedGraph>(parts_.graphs.begin(), end);
  }
  Result<std::vector<NamedGraph>> Evaluation(int64_t /*slices*/) override {
    const auto begin = parts_.graphs.begin() + static_cast<std::ptrdiff_t>(training_);
    return std::vector<NamedGraph>(begin, parts_.graphs.end());
  }
  const std::map<std::string, WholeVariable>& variables() const { return parts_.variables; }

 private:
  JobGraphs& whole_;
  const Mesh& mesh_;
  const Sharding& sharding_;
  size_t training_ = 0;
  MeshGraphs parts_;
};

Status CheckMesh(const SearchRequest& q, const Mesh& mesh) {
  if (mesh.devices() != q.machine.ranks) {
    return InvalidArgument(
        fmt::format("--mesh {} is of {} devices; the job has {}. hint: "
                    "--devices {}",
                    MeshText(mesh), mesh.devices(), q.machine.ranks, mesh.devices()));
  }
  if (!q.lengths.empty())
    return InvalidArgument("--bucket: a mesh has batches of one length. hint: leave one out");
  return CheckOneSlice(q.options, q.facts);
}

// A rank of options.mesh.
Result<PlanChoice> SearchMeshPlan(const SearchRequest& q, const Mesh& mesh) {
  RIDGE_ASSIGN_OR_RETURN(const Sharding sharding, ParseSharding(q.options.shard));
  RIDGE_RETURN_IF_ERROR(CheckMesh(q, mesh));
  RIDGE_ASSIGN_OR_RETURN(const PassSelection passes, ParsePassSpec(q.options.passes));
  RIDGE_ASSIGN_OR_RETURN(const DType operands, ProductOperands(q.options.precision, q.machine));
  TrainingJobGraphs whole(q, passes, /*share=*/std::nullopt);
  MeshJobGraphs graphs(whole, mesh, sharding);
  PlanGoals goals;
  goals.batch = q.facts.batch;
  goals.accumulate = q.options.accumulate;
  goals.limit_bytes = q.limit_bytes;
  MeshKernels kernels(q.machine.query());
  const ProgramRecipe recipe = {q.options.model, passes, operands,
                                PlanOptionsFor(passes, q.machine, OffloadOf(q.options.offload))};
  RIDGE_ASSIGN_OR_RETURN(PlanChoice choice,
                         SearchPlan(graphs, recipe, kernels, q.machine.measured(), goals));
  PlaceOnMesh({mesh, q.machine.rank}, graphs.variables(), choice.program);
  return choice;
}

// A rank of the stages of options.mesh.
Result<PlanChoice> SearchPipelinePlan(const SearchRequest& q, const Mesh& mesh) {
  RIDGE_RETURN_IF_ERROR(CheckMesh(q, mesh));
  RIDGE_ASSIGN_OR_RETURN(
      const ScheduleKind kind,
      ParseScheduleKind(q.options.pipeline.empty() ? "1f1b" : q.options.pipeline));
  RIDGE_ASSIGN_OR_RETURN(const PassSelection passes, ParsePassSpec(q.options.passes));
  TrainingJobGraphs whole(q, passes, /*share=*/std::nullopt);
  PipelineGraphs graphs;
  RIDGE_ASSIGN_OR_RETURN(graphs.training, whole.Training(/*slices=*/1));
  RIDGE_ASSIGN_OR_RETURN(graphs.evaluation, whole.Evaluation(/*slices=*/1));
  RIDGE_ASSIGN_OR_RETURN(PipelineJob job,
                         PlanPipelineJob(q.options, graphs, mesh, kind, q.machine));
  PlanChoice choice;
  choice.program = std::move(job.programs.at(static_cast<size_t>(q.machine.rank)));
  choice.candidates.push_back(
      {.bytes = job.ranks.at(static_cast<size_t>(q.machine.rank)).peak_bytes,
       .seconds = job.nominal_s,
       .chosen = true});
  return choice;
}

// What this rank computes of a batch in a tree.
Result<SliceShare> ShareOfRank(const SearchRequest& q, int64_t slices) {
  const Machine& machine = q.machine;
  SliceShare share = {slices, machine.rank, machine.ranks, machine.dealt};
  if (machine.ranks == 1 || !share.dealt.empty()) return share;
  RIDGE_RETURN_IF_ERROR(CheckShares(q.options, machine.ranks));
  RIDGE_ASSIGN_OR_RETURN(const SharesOption shares, ParseShares(q.options.shares));
  if (!shares.parts.empty()) share.dealt = DealSlices(slices, shares.parts);
  return share;
}

// The share with the most slices.
SliceShare LargestShare(SliceShare share) {
  int most = share.rank;
  for (int rank = 0; rank < share.ranks; ++rank) {
    if (share.OwnedBy(rank).count() > share.OwnedBy(most).count()) most = rank;
  }
  share.rank = most;
  return share;
}

// The search over the plans of one rank.
Result<PlanChoice> SearchShare(const SearchRequest& q, const PassSelection& passes,
                               const std::optional<SliceShare>& share, PlanGoals goals) {
  RIDGE_ASSIGN_OR_RETURN(const DType operands, ProductOperands(q.options.precision, q.machine));
  TrainingJobGraphs graphs(q, passes, share);
  if (goals.slices == kAutoSlices) {
    goals.slices = 1;
    if (goals.batch > 1 && graphs.FindAxes().ok()) goals.slices.reset();
  }
  std::vector<std::string> host_parameters;
  if (!q.options.place.empty()) {
    RIDGE_ASSIGN_OR_RETURN(host_parameters, PlacedParameters(q.options.place, q.forward));
  }
  // Updates that reach the host's memory, or run there, stay single: each has its own time there.
  const Offload offload = OffloadOf(q.options.offload);
  const bool groups = offload == Offload::kNone && host_parameters.empty();
  const ProgramRecipe recipe = {
      q.options.model, passes, operands,
      PlanOptionsFor(passes, q.machine, offload, std::move(host_parameters)), groups};
  return SearchPlan(graphs, recipe, q.machine.query(), q.machine.measured(), goals);
}

// Several devices update a weight by sums in their own memories.
Status CheckPlacement(const SearchRequest& q) {
  if (q.options.place.empty()) return Status();
  if (!q.options.mesh.empty() || q.machine.adds_in_tree()) {
    return Status(ErrorCode::kUnsupported,
                  "--place: several devices add gradients in their own memories. hint: leave out "
                  "--devices and --mesh, or --place");
  }
  if (q.options.sums == "tree") {
    return Status(ErrorCode::kUnsupported,
                  "--place: the blocks of --sums tree lie in the device's memory. hint: --sums "
                  "running");
  }
  if (q.machine.query().host() != nullptr) return Status();
  return Status(ErrorCode::kUnsupported,
                fmt::format("--place is '{}'; {} has no memory beside its host's, or is not here. "
                            "hint: --device cuda",
                            fmt::join(q.options.place, ","), q.machine.profile.name));
}

}  // namespace

Result<PlanChoice> SearchTrainingPlan(const SearchRequest& q) {
  RIDGE_RETURN_IF_ERROR(CheckPlacement(q));
  if (!q.options.mesh.empty()) {
    RIDGE_ASSIGN_OR_RETURN(const Mesh mesh, ParseMesh(q.options.mesh));
    return mesh.Find(kPipelineAxis) >= 0 ? SearchPipelinePlan(q, mesh) : SearchMeshPlan(q, mesh);
  }
  RIDGE_ASSIGN_OR_RETURN(int64_t slices, ParseSlices(q.options.slices));
  RIDGE_RETURN_IF_ERROR(CheckRanks(q));
  std::optional<SliceShare> share;
  if (q.options.wire != "f32" && q.options.sums != "tree") {
    return InvalidArgument(fmt::format(
        "--wire {} rounds the sums of a tree; --sums is {}. hint: --sums tree, or --devices 2",
        q.options.wire, q.options.sums));
  }
  if (q.options.sums == "tree") {
    RIDGE_ASSIGN_OR_RETURN(const SharesOption shares, ParseShares(q.options.shares));
    if (slices == kAutoSlices) slices = FewestSlices(CommonBatch(q), q.machine.ranks, shares);
    RIDGE_RETURN_IF_ERROR(CheckTree(q, slices));
    RIDGE_ASSIGN_OR_RETURN(share, ShareOfRank(q, slices));
  }
  RIDGE_ASSIGN_OR_RETURN(const RecomputeOption recompute, ParseRecompute(q.options.recompute));
  RIDGE_ASSIGN_OR_RETURN(const PassSelection passes, ParsePassSpec(q.options.passes));
  const bool compare = !q.facts.has_optimizer && q.forward.nodes().size() <= kMostNodes;
  PlanGoals goals;
  goals.batch = CommonBatch(q);
  goals.slices = compare ? slices : std::max<int64_t>(1, slices);
  if (slices != kAutoSlices && goals.batch % slices != 0) {
    return InvalidArgument(
        fmt::format("--slices is {}; with --bucket {} it must divide each batch, so {}", slices,
                    q.options.bucket, goals.batch));
  }
  goals.recompute = LimitsOf(recompute);
  if (compare && recompute.kind == RecomputeOption::Kind::kAuto) goals.recompute.reset();
  if (recompute.kind == RecomputeOption::Kind::kBudget)
    goals.budget = ScratchBudget{recompute.share, recompute.bytes};
  RIDGE_ASSIGN_OR_RETURN(goals.loss_chunks, ParseLossChunks(q.options.loss_chunks));
  // Ranks must choose alike, whatever their memory; a placed table is added to where it lies.
  if (!goals.loss_chunks && (!compare || share || !q.options.place.empty())) goals.loss_chunks = 1;
  goals.accumulate = q.options.accumulate;
  goals.limit_bytes = q.limit_bytes;
  goals.recorded_run_bytes = q.machine.recorded_run_bytes;
  goals.host_link_bytes_per_s = q.machine.host_link_bytes_per_s;
  if (goals.host_link_bytes_per_s > 0) goals.offload = OffloadOf(q.options.offload);
  if (!share || goals.recompute || share->owned() == LargestShare(*share).owned())
    return SearchShare(q, passes, share, goals);
  RIDGE_ASSIGN_OR_RETURN(const PlanChoice largest,
                         SearchShare(q, passes, LargestShare(*share), goals));
  RIDGE_ASSIGN_OR_RETURN(const RecomputeOption chosen, ParseRecompute(largest.recompute));
  goals.recompute = LimitsOf(chosen);
  return SearchShare(q, passes, share, goals);
}

}  // namespace ridge

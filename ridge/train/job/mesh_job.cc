#include "ridge/train/job/mesh_job.h"

#include <fmt/format.h>

#include "ridge/learn/optimizers/rates.h"
#include "ridge/lower/pipeline.h"
#include "ridge/partition/normal_form.h"
#include "ridge/plan/cost/times.h"
#include "ridge/train/job/job.h"

namespace ridge {
namespace {

constexpr char kCollective[] = "collective";

bool IsOfMesh(const OpDef& op) { return IsCollective(op) || &op == &LocalPartOp(); }

// A device's kernels, and one that stands for each collective: row-major, without workspace.
class MeshKernels : public KernelQuery {
 public:
  explicit MeshKernels(KernelQuery& device) : device_(device) {}

  MemorySpace memory() override { return device_.memory(); }
  const RewriteRules& rules() const override { return device_.rules(); }
  const CostModel& nominal() const override { return device_.nominal(); }
  bool Multiplies(DType operands) const override { return device_.Multiplies(operands); }
  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override {
    if (IsOfMesh(op)) return {{RowMajorChoice(op, call, kCollective)}, {}};
    return device_.Candidates(op, call, available);
  }
  KernelCandidates SerialCandidates(const OpDef& op, const OpCall& call,
                                    std::span<const LayoutId> available) override {
    return IsOfMesh(op) ? KernelCandidates() : device_.SerialCandidates(op, call, available);
  }
  int64_t LayoutBytes(LayoutId layout, const TensorType& type) const override {
    return device_.LayoutBytes(layout, type);
  }
  std::string LayoutName(LayoutId layout) const override { return device_.LayoutName(layout); }
  KernelChoice Reorder(const TensorType& type, LayoutId from, LayoutId to) override {
    return device_.Reorder(type, from, to);
  }
  std::optional<KernelChoice> SerialReorder(const TensorType& type, LayoutId from,
                                            LayoutId to) override {
    return device_.SerialReorder(type, from, to);
  }

 private:
  KernelQuery& device_;
};

Status CheckOneSlice(const TrainOptions& options, const ForwardInfo& facts) {
  const auto refused = [](const std::string& what) {
    return InvalidArgument(what + " of a plan on a mesh. hint: leave it out");
  };
  if (options.slices != "auto" && options.slices != "1")
    return refused(fmt::format("--slices is '{}'; there is one slice", options.slices));
  if (options.recompute != "auto" && options.recompute != "off")
    return refused(fmt::format("--recompute is '{}'; nothing is recomputed", options.recompute));
  if (facts.has_optimizer)
    return refused("the model brings its own training step; gradients are those of ridge");
  return Status();
}

// The graph of an update alone has no products from which a tensor axis could be found.
Status CheckAccumulation(const TrainOptions& options, const Mesh& mesh) {
  const int tensor = mesh.Find(kTensorAxis);
  if (options.accumulate == 1 || tensor < 0 || mesh.size(tensor) == 1) return Status();
  return InvalidArgument(fmt::format(
      "mesh {}: --accumulate is {}; with axis t a batch is one micro-batch. hint: --mesh "
      "p=1,d=N,t={} plans it by formula",
      MeshText(mesh), options.accumulate, mesh.size(tensor)));
}

Result<std::vector<NamedGraph>> StepsOf(const TrainOptions& options, const Graph& forward,
                                        const Machine& machine) {
  RIDGE_ASSIGN_OR_RETURN(const PassSelection passes, ParsePassSpec(options.passes));
  RIDGE_ASSIGN_OR_RETURN(const Graph simple,
                         RunPasses(forward, ForwardPasses(passes), machine.query().rules()));
  TrainingGraphOptions training;
  training.optimizer = options.optimizer;
  RIDGE_ASSIGN_OR_RETURN(training.rates, ParseRateFactors(options.lr_for));
  training.average_decay = options.ema;
  training.clip_norm = options.clip_norm;
  training.accumulate = options.accumulate;
  return BuildTrainingGraphs(simple, training);
}

// Seconds of the nodes that run on the device alone.
double KernelSeconds(const StepPlan& step) {
  const std::vector<double> node_s = PlannedNodeSeconds(step);
  double seconds = 0;
  for (size_t n = 0; n < node_s.size(); ++n) {
    if (step.nodes[n].choice.kernel != kCollective) seconds += node_s[n];
  }
  return seconds;
}

void AddState(const StateBytes& more, bool first, StateBytes& to) {
  if (first) {  // variables are those of the other steps too
    to = more;
  } else {
    to.gradients = std::max(to.gradients, more.gradients);
    to.optimizer = std::max(to.optimizer, more.optimizer);
  }
}

}  // namespace

Result<MeshJob> PlanMeshJob(const TrainOptions& options, const Graph& forward,
                            const ForwardInfo& facts, const Mesh& mesh, const Sharding& sharding,
                            const Machine& machine) {
  RIDGE_RETURN_IF_ERROR(CheckOneSlice(options, facts));
  RIDGE_RETURN_IF_ERROR(CheckAccumulation(options, mesh));
  MeshJob job;
  job.mesh = mesh;
  job.sharding = sharding;
  RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> graphs, StepsOf(options, forward, machine));
  for (NamedGraph& named : graphs) {
    RIDGE_ASSIGN_OR_RETURN(const Graph form, NormalForm(named.graph));
    std::vector<TensorPair> pairs;
    RIDGE_ASSIGN_OR_RETURN(const Layout layout, MakeLayout(form, mesh, sharding, &pairs));
    RIDGE_ASSIGN_OR_RETURN(Partitioned parts, Partition(form, layout, mesh));
    const bool first = job.steps.empty();
    AddState(StateBytesOf(form, parts), first, job.state);
    AddState(ZeroStateBytes(form, /*stage=*/0, /*ranks=*/1), first, job.one_device);
    if (first) job.pairs = static_cast<int64_t>(pairs.size());
    job.steps.push_back({named.name, SumCollectives(parts.collectives)});
    named.graph = std::move(parts.local);
    named.may_recompute = false;
  }
  MeshKernels kernels(machine.query());
  Machine rank = machine;
  rank.backend = nullptr;
  rank.planned = &kernels;
  RIDGE_ASSIGN_OR_RETURN(const DType operands, ProductOperands(options.precision, machine));
  RIDGE_ASSIGN_OR_RETURN(
      job.program, PlanGraphs(options.model, std::move(graphs), options.passes, operands, rank));
  job.memory =
      EstimateMemory(job.program, ProfiledRuntimeBytes(machine.measured().facts(), job.program),
                     /*data_bytes=*/0);
  for (const StepPlan& step : job.program.steps)
    job.kernel_s +=
        KernelSeconds(step) * static_cast<double>(step.name == "micro" ? options.accumulate : 1);
  return job;
}

}  // namespace ridge

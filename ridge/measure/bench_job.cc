#include "ridge/measure/bench_job.h"

#include "ridge/plan/mesh_nodes.h"
#include "ridge/train/job/rehearsed_job.h"
#include "ridge/train/load/forward.h"
#include "ridge/train/loop/evaluation.h"

namespace ridge {
namespace {

constexpr int64_t kStillToComeBytes = int64_t{1} << 19;  // the batch's maker and the report

}  // namespace

Result<std::unique_ptr<BenchJob>> BenchJob::Create(const TrainOptions& options,
                                                   const std::string& run, double rehearse_s,
                                                   const Machine& machine) {
  if (options.accumulate != 1) {
    return InvalidArgument("single batches are timed: no --accumulate");
  }
  std::unique_ptr<BenchJob> bench(new BenchJob());
  RIDGE_ASSIGN_OR_RETURN(Forward forward, LoadForward(options, run));
  bench->forward_ = std::move(forward.graph);
  bench->data_ = std::move(forward.data);
  RIDGE_ASSIGN_OR_RETURN(bench->job_, PlanTrainingOnly(options, *bench->forward_, machine));
  RIDGE_RETURN_IF_ERROR(CheckFits(bench->job_));
  RehearsalOptions rehearsal;
  rehearsal.kernels_s = rehearse_s;
  rehearsal.still_to_come_bytes = kStillToComeBytes;
  rehearsal.will_run = true;
  RIDGE_ASSIGN_OR_RETURN(bench->executor_,
                         RehearseJob(machine, /*data=*/nullptr, rehearsal, bench->job_));
  RIDGE_RETURN_IF_ERROR(bench->executor_->transfers().Initialize(options.seed));
  bench->runner_.emplace(*bench->executor_, bench->job_);
  return bench;
}

Status BenchJob::FillBatch() {
  DataOptions made = DataOptionsOf(*forward_, job_.facts, job_.options.seed);
  made.synthetic_samples = job_.options.batch;
  RIDGE_ASSIGN_OR_RETURN(const DataSplits data, OpenData("synthetic", made));
  RIDGE_ASSIGN_OR_RETURN(
      const BatchSpec spec,
      InputsOf(*executor_, MakeBatchSpec(*forward_, job_.facts, /*with_weight=*/false),
               *data.train));
  LoaderOptions options;
  options.batch = job_.options.batch;
  options.share = SampleShareOf(executor_->program());
  options.workers = 0;
  RIDGE_ASSIGN_OR_RETURN(
      const std::unique_ptr<BatchLoader> loader,
      BatchLoader::Create(data.train, spec, options, InputSlots(*executor_, spec)));
  RIDGE_ASSIGN_OR_RETURN(const LoadedBatch batch, loader->Next());
  RIDGE_CHECK(batch.slot == 0, "the first batch goes to slot 0");
  return Status();
}

Status BenchJob::StartLoader() {
  RIDGE_ASSIGN_OR_RETURN(const JobData data,
                         OpenJobData(job_.options, *forward_, job_.facts, data_));
  return runner_->StartLoader(data);
}

Result<StepRunner::Update> BenchJob::RunStep() {
  return runner_->Run({job_.options.lr, done_++, job_.options.seed});
}

Result<double> TrainingFlops(const Graph& forward, const OptimizerOptions& optimizer) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<NamedGraph> graphs,
                         BuildTrainingGraphs(forward, {optimizer}));
  const Graph& graph = graphs[0].graph;
  double flops = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op->cost_class != CostClass::kMatmul && node.op->cost_class != CostClass::kConv)
      continue;
    flops += static_cast<double>(CallCost(*node.op, graph.Call(node)).flops);
  }
  return flops;
}

}  // namespace ridge

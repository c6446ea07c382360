#include "ridge/train/bench_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ridge/core/process.h"
#include "ridge/core/version.h"
#include "ridge/plan/cost/roofline.h"
#include "ridge/train/evaluation.h"
#include "ridge/train/forward.h"
#include "ridge/train/job.h"
#include "ridge/train/rehearsed_job.h"
#include "ridge/train/scalar_inputs.h"

namespace ridge {
namespace {

constexpr int64_t kStillToComeBytes = int64_t{1} << 19;  // the batch's maker and the report

class Bench {
 public:
  Bench(const BenchRequest& request, const Machine& machine)
      : request_(request), machine_(machine) {}

  Result<BenchResult> Run();

 private:
  Status Prepare();
  Status FillBatch();
  Status RunSteps();
  void ReadFigures();
  Status AddRoofline();

  const BenchRequest& request_;
  Machine machine_;
  std::optional<Graph> forward_;
  PlannedJob job_;
  std::unique_ptr<Executor> executor_;
  std::vector<double> seconds_;
  BenchResult result_;
};

// Of the graph as built: what the passes save does not count against the floor.
double ModelFlops(const Graph& graph) {
  double flops = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op->cost_class != CostClass::kMatmul && node.op->cost_class != CostClass::kConv)
      continue;
    flops += static_cast<double>(CallCost(*node.op, graph.Call(node)).flops);
  }
  return flops;
}

Result<BenchResult> Bench::Run() {
  RIDGE_RETURN_IF_ERROR(Prepare());
  RIDGE_RETURN_IF_ERROR(FillBatch());
  RIDGE_RETURN_IF_ERROR(RunSteps());
  ReadFigures();
  RIDGE_RETURN_IF_ERROR(AddRoofline());
  return std::move(result_);
}

Status Bench::Prepare() {
  const TrainOptions& options = request_.options;
  RIDGE_ASSIGN_OR_RETURN(Forward forward, LoadForward(options));
  forward_ = std::move(forward.graph);
  RIDGE_ASSIGN_OR_RETURN(job_, PlanTrainingOnly(options, *forward_, machine_));
  RIDGE_RETURN_IF_ERROR(CheckFits(job_));
  RehearsalOptions rehearsal;
  rehearsal.kernels_s = request_.rehearse_s;
  rehearsal.still_to_come_bytes = kStillToComeBytes;
  rehearsal.will_run = true;
  RIDGE_ASSIGN_OR_RETURN(executor_, RehearseJob(machine_, /*data=*/nullptr, rehearsal, job_));
  executor_->InitializeVariables(options.seed);
  return Status();
}

// One batch, made as `--data synthetic` makes it.
Status Bench::FillBatch() {
  DataOptions made = SyntheticOptions(*forward_, job_.facts, request_.options.seed);
  made.synthetic_samples = request_.options.batch;
  RIDGE_ASSIGN_OR_RETURN(const DataSplits data, OpenData("synthetic", made));
  const BatchSpec spec = MakeBatchSpec(*forward_, job_.facts, /*with_weight=*/false);
  LoaderOptions options;
  options.batch = request_.options.batch;
  options.background = false;
  RIDGE_ASSIGN_OR_RETURN(
      const std::unique_ptr<BatchLoader> loader,
      BatchLoader::Create(data.train, spec, options, InputSlots(*executor_, spec)));
  RIDGE_ASSIGN_OR_RETURN(const Filled filled, loader->Next());
  RIDGE_CHECK(filled.slot == 0, "the first batch goes to slot 0");
  return Status();
}

Status Bench::RunSteps() {
  const int step = executor_->StepIndex("train");
  ScalarInputs scalars(*executor_, job_.lr_dtype, request_.options.batch);
  seconds_.reserve(static_cast<size_t>(request_.steps));
  for (int64_t i = 0; i < request_.steps; ++i) {
    const double begin = MonotonicSeconds();
    scalars.Write(/*slot=*/0, request_.options.lr, i, {request_.options.seed, 0});
    RIDGE_RETURN_IF_ERROR(executor_->Run(step, /*slot=*/0));
    result_.loss =
        LoadAsDouble(executor_->OutputType(step, "loss").dtype, executor_->Output(step, "loss"), 0);
    seconds_.push_back(MonotonicSeconds() - begin);
    if (i > 0) continue;
    result_.loss0 = result_.loss;
    result_.first_step_s = SecondsSinceProcessStart();
  }
  return Status();
}

// The first steps warm caches up; they count only when there are no others.
void Bench::ReadFigures() {
  const int64_t peak = ReadProcessMemory().peak_resident_bytes;
  const size_t warm_up = seconds_.size() > 20 ? 10 : seconds_.size() / 2;
  std::vector<double> timed(seconds_.begin() + static_cast<int64_t>(warm_up), seconds_.end());
  std::sort(timed.begin(), timed.end());
  const double median = (timed[timed.size() / 2] + timed[(timed.size() - 1) / 2]) / 2;
  const TrainOptions& options = request_.options;
  result_.model = options.model;
  result_.optimizer = job_.facts.own_step ? "own" : options.optimizer.name;
  result_.precision = DTypeName(job_.operands);
  result_.version = kRidgeVersion;
  result_.batch = options.batch;
  result_.slices = executor_->program().Find("train")->slices;
  result_.threads = machine_.backend->threads();
  result_.params = job_.parameter_count;
  result_.ms_min = timed.front() * 1e3;
  result_.ms_med = median * 1e3;
  result_.samples_s = static_cast<double>(options.batch) / median;
  result_.peak_mb = static_cast<double>(peak - request_.resident_at_main_bytes) / (1 << 20);
  result_.planned = {job_.memory.peak_bytes, job_.memory.arena_bytes, job_.step_s, {}};
  result_.measured = {peak, executor_->arena().resident_bytes(), median, {}};
}

Status Bench::AddRoofline() {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<NamedGraph> graphs,
                         BuildTrainingGraphs(*forward_, {request_.options.optimizer}));
  result_.model_flops = ModelFlops(graphs[0].graph);
  if (!request_.measure_peaks) return Status();
  RIDGE_ASSIGN_OR_RETURN(result_.peaks, request_.measure_peaks(job_.operands));
  result_.flops_floor_s = result_.model_flops / result_.peaks.flops_per_s;
  result_.roofline_step_s = RooflineSeconds(*executor_->program().Find("train"),
                                            result_.peaks.flops_per_s, result_.peaks.bytes_per_s);
  return Status();
}

using Json = nlohmann::ordered_json;

Json FiguresJson(const RunFigures& figures) {
  return {{"peak_bytes", figures.peak_bytes},
          {"arena_bytes", figures.arena_bytes},
          {"step_s", figures.step_s}};
}

}  // namespace

Result<BenchResult> BenchStep(const BenchRequest& request, const Machine& machine) {
  if (request.steps < 1) {
    return Status(ErrorCode::kInvalidArgument,
                  fmt::format("--steps is {}; it must be at least 1", request.steps));
  }
  if (request.options.accumulate != 1)
    return Status(ErrorCode::kInvalidArgument, "bench step times single batches: no --accumulate");
  return Bench(request, machine).Run();
}

std::string BenchToJson(const BenchResult& r) {
  const Json json = {{"fw", "ridge"},
                     {"ver", r.version},
                     {"model", r.model},
                     {"batch", r.batch},
                     {"slices", r.slices},
                     {"opt", r.optimizer},
                     {"prec", r.precision},
                     {"threads", r.threads},
                     {"params", r.params},
                     {"ms_min", r.ms_min},
                     {"ms_med", r.ms_med},
                     {"samples_s", r.samples_s},
                     {"first_step_s", r.first_step_s},
                     {"peak_mb", r.peak_mb},
                     {"loss0", r.loss0},
                     {"loss", r.loss},
                     {"planned", FiguresJson(r.planned)},
                     {"measured", FiguresJson(r.measured)},
                     {"peak_flops_per_s", r.peaks.flops_per_s},
                     {"bytes_per_s", r.peaks.bytes_per_s},
                     {"model_flops", r.model_flops},
                     {"flops_floor_s", r.flops_floor_s},
                     {"roofline_step_s", r.roofline_step_s}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ridge

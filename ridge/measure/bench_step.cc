#include "ridge/measure/bench_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "ridge/core/median.h"
#include "ridge/core/process.h"
#include "ridge/core/version.h"
#include "ridge/dist/agreement.h"
#include "ridge/measure/bench_job.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/tree_sums.h"
#include "ridge/runtime/peak_memory.h"
#include "ridge/train/loop/measured_bytes.h"

namespace ridge {
namespace {

class Bench {
 public:
  Bench(const BenchRequest& request, const Machine& machine)
      : request_(request), machine_(machine) {}

  Result<BenchResult> Run();

 private:
  Status AgreeOnPlan();
  Status RunSteps();
  size_t WarmUp() const;
  void ReadFigures();
  Status ReadRanks();
  Status AddRoofline();

  const BenchRequest& request_;
  Machine machine_;
  std::unique_ptr<BenchJob> job_;
  std::vector<double> seconds_, collective_s_;
  BenchResult result_;
};

Result<BenchResult> Bench::Run() {
  RIDGE_ASSIGN_OR_RETURN(
      job_, BenchJob::Create(request_.options, /*run=*/"", request_.rehearse_s, machine_));
  RIDGE_RETURN_IF_ERROR(AgreeOnPlan());
  RIDGE_RETURN_IF_ERROR(job_->FillBatch());
  RIDGE_RETURN_IF_ERROR(RunSteps());
  ReadFigures();
  RIDGE_RETURN_IF_ERROR(ReadRanks());
  RIDGE_RETURN_IF_ERROR(AddRoofline());
  return std::move(result_);
}

Status Bench::AgreeOnPlan() {
  return Agreement(machine_.communicator)
      .Same("other exchanges", ExchangeOrder(job_->executor().program()), kStartAlike);
}

Status Bench::RunSteps() {
  seconds_.reserve(static_cast<size_t>(request_.steps));
  for (int64_t i = 0; i < request_.steps; ++i) {
    RIDGE_ASSIGN_OR_RETURN(const StepRunner::Update step, job_->RunStep());
    seconds_.push_back(step.seconds);
    collective_s_.push_back(step.collective_s);
    result_.loss = step.loss;
    if (i > 0) continue;
    result_.loss0 = step.loss;
    result_.first_step_s = SecondsSinceProcessStart();
  }
  return Status();
}

// The first steps warm caches up; they count only when there are no others.
size_t Bench::WarmUp() const { return seconds_.size() > 20 ? 10 : seconds_.size() / 2; }

// What a rank spends in collectives beyond the one that comes last, it waits.
Status Bench::ReadRanks() {
  if (machine_.communicator == nullptr) return Status();
  result_.ranks = machine_.communicator->size();
  RIDGE_ASSIGN_OR_RETURN(const auto all, Agreement(machine_.communicator).All(collective_s_));
  std::vector<double> least_s;
  for (size_t i = WarmUp(); i < collective_s_.size(); ++i) {
    least_s.push_back(all.front()[i]);
    for (const std::vector<double>& of : all) least_s.back() = std::min(least_s.back(), of[i]);
  }
  result_.measured.communication_s = Median(least_s);
  result_.planned.communication_s = SumSeconds(job_->plan());
  result_.compute_s = job_->job().step_s - *result_.planned.communication_s;
  return Status();
}

void Bench::ReadFigures() {
  const int64_t peak = MeasuredPeakBytes(machine_.backend->device());
  const std::vector<double> timed(seconds_.begin() + static_cast<int64_t>(WarmUp()),
                                  seconds_.end());
  const double median = Median(timed);
  const TrainOptions& options = request_.options;
  result_.model = options.model;
  result_.optimizer = job_->job().facts.has_optimizer ? "own" : options.optimizer.name;
  result_.precision = DTypeName(job_->job().operands);
  result_.version = kRidgeVersion;
  result_.batch = options.batch;
  result_.slices = job_->executor().program().Find("train")->slices;
  result_.virtual_compute = machine_.compute != nullptr;
  result_.threads = machine_.backend->threads();
  result_.params = job_->job().parameter_count;
  result_.ms_min = *std::min_element(timed.begin(), timed.end()) * 1e3;
  result_.ms_med = median * 1e3;
  result_.ms_mean =
      std::reduce(timed.begin(), timed.end()) / static_cast<double>(timed.size()) * 1e3;
  result_.samples_s = static_cast<double>(options.batch) / median;
  result_.peak_mb =
      static_cast<double>(peak - machine_.Counted(request_.resident_at_main_bytes)) / (1 << 20);
  result_.planned = {job_->job().memory.peak_bytes,
                     job_->job().memory.arena_bytes,
                     job_->job().step_s,
                     {},
                     job_->job().modelled_step_s};
  result_.measured = {peak, job_->executor().arena().resident_bytes(), median, {}};
  result_.device_bytes = EndDeviceBytes(machine_, peak, result_.planned.peak_bytes);
}

Status Bench::AddRoofline() {
  RIDGE_ASSIGN_OR_RETURN(result_.model_flops,
                         TrainingFlops(job_->forward(), request_.options.optimizer));
  if (!request_.measure_peaks) return Status();
  RIDGE_ASSIGN_OR_RETURN(result_.peaks, request_.measure_peaks(job_->job().operands));
  if (result_.peaks.flops_per_s == 0) return Status();
  result_.flops_floor_s = result_.model_flops / result_.peaks.flops_per_s;
  result_.roofline_step_s =
      RooflineSeconds(job_->plan(), result_.peaks.flops_per_s, result_.peaks.bytes_per_s);
  return Status();
}

using Json = nlohmann::ordered_json;

// Steps on one batch have no epoch.
Json StepFiguresToJson(const RunFigures& figures) {
  Json json = FiguresToJson(figures);
  json.erase("epoch_s");
  return json;
}

}  // namespace

Result<BenchResult> BenchStep(const BenchRequest& request, const Machine& machine) {
  if (request.steps < 1) {
    return InvalidArgument(fmt::format("--steps is {}; it must be at least 1", request.steps));
  }
  return Bench(request, machine).Run();
}

std::string BenchToJson(const BenchResult& r) {
  Json json = {{"fw", "ridge"},
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
               {"ms_mean", r.ms_mean},
               {"samples_s", r.samples_s},
               {"first_step_s", r.first_step_s},
               {"peak_mb", r.peak_mb},
               {"loss0", r.loss0},
               {"loss", r.loss},
               {"planned", StepFiguresToJson(r.planned)},
               {"measured", StepFiguresToJson(r.measured)},
               {"peak_flops_per_s", r.peaks.flops_per_s},
               {"bytes_per_s", r.peaks.bytes_per_s},
               {"model_flops", r.model_flops},
               {"flops_floor_s", r.flops_floor_s},
               {"roofline_step_s", r.roofline_step_s}};
  if (r.ranks > 1) {
    json["ranks"] = r.ranks;
    json["planned"]["compute_s"] = r.compute_s;
    json["virtual_compute"] = r.virtual_compute;
  }
  if (r.device_bytes) json["device_bytes"] = DeviceBytesToJson(*r.device_bytes);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ridge

#include "ridge/train/job/pipeline_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ridge/core/rounding.h"
#include "ridge/core/sha256.h"
#include "ridge/learn/averages.h"
#include "ridge/pipeline/check_schedule.h"
#include "ridge/pipeline/cuts.h"
#include "ridge/pipeline/rank_graphs.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/search/rewrite_graphs.h"
#include "ridge/train/job/job.h"
#include "ridge/train/job/mesh_job.h"

namespace ridge {
namespace {

constexpr int kRounds = 4;
constexpr int64_t kPlacement = 64;

Status CheckRequest(const TrainOptions& options, const Mesh& mesh) {
  if (mesh.axes.size() != 1) {
    return InvalidArgument(
        fmt::format("mesh {}: stages of a pipeline are planned with one device each. hint: --mesh "
                    "p={}",
                    MeshText(mesh), mesh.size(mesh.Find(kPipelineAxis))));
  }
  if (options.accumulate < 2) {
    return InvalidArgument(
        fmt::format("--accumulate is {}; a pipeline needs 2 micro batches or more. hint: "
                    "--accumulate {}",
                    options.accumulate, 2 * mesh.devices()));
  }
  return Status();
}

// By node of `graph`, on the nominal device, each on its own.
std::vector<double> NominalSeconds(const Graph& graph, KernelQuery& kernels) {
  std::vector<double> seconds;
  for (const Node& node : graph.nodes()) {
    const OpCall call = graph.Call(node);
    const std::vector<LayoutId> row_major(node.inputs.size(), kRowMajor);
    const KernelCandidates found = node.op->alias_input >= 0
                                       ? KernelCandidates()
                                       : kernels.Candidates(*node.op, call, row_major);
    const Work work = WorkOf(node.op, call, CallCost(*node.op, call));
    seconds.push_back(
        found.choices.empty() ? 0 : kernels.nominal().Estimate(work, found.choices[0]).seconds());
  }
  return seconds;
}

double Sum(const std::vector<double>& seconds) {
  double sum = 0;
  for (double s : seconds) sum += s;
  return sum;
}

double SendSecondsOn(const Machine& machine, int64_t bytes) {
  if (machine.group)
    return CollectiveSeconds(*machine.group, CollectiveKind::kSend, static_cast<double>(bytes))
        .value_or(0);
  // Ranks of one machine copy: a read and a write.
  if (machine.profile.memory.empty()) return 0;
  return 2 * static_cast<double>(bytes) / machine.profile.memory.back().bytes_per_s;
}

int64_t* BytesOf(PipelineChunk& chunk, const ValueInfo& info) {
  if (info.kind == ValueKind::kParameter) return &chunk.parameters_bytes;
  if (info.role == ValueRole::kOptimizer) return &chunk.optimizer_bytes;
  return info.role == ValueRole::kGradient ? &chunk.gradients_bytes : &chunk.other_bytes;
}

void AddState(const PipelineStage& stage, PipelineChunk& chunk) {
  std::set<std::string> seen;
  for (const Graph* graph :
       {&stage.forward, &stage.backward, &stage.weights, &stage.numbers, &stage.update}) {
    for (const ValueInfo& info : graph->values()) {
      if (info.kind != ValueKind::kParameter && info.kind != ValueKind::kState) continue;
      if (seen.insert(info.name).second)
        *BytesOf(chunk, info) += RoundUp(info.type.bytes(), kPlacement);
    }
  }
}

// What a stage sends for the others' update, and gets behind theirs.
int64_t ExchangeBytes(const std::vector<PipelineStage>& stages, size_t own, const Graph& update,
                      const Graph& micro) {
  int64_t bytes = 0;
  for (const std::string& name : stages[own].shares) {
    const auto reads = [&](const PipelineStage& other) {
      return &other != &stages[own] && other.update.FindValue(name) != kNoValue;
    };
    if (std::any_of(stages.begin(), stages.end(), reads))
      bytes += update.type(update.FindValue(name)).bytes();
  }
  for (const TiedCopy& copy : stages[own].copies)
    bytes += micro.type(micro.FindValue(copy.variable)).bytes();
  return bytes;
}

// ---- what all devices know

// The variables of a checkpoint, in order of names.
std::vector<StageVariable> VariablesOf(const std::vector<Program>& programs,
                                       const PipelineRole& role) {
  std::map<std::string, StageVariable> variables;
  std::map<std::string, std::string> copy_of;
  for (const UpdateMessage& copy : role.copies) copy_of[copy.becomes] = copy.value;
  for (size_t d = 0; d < programs.size(); ++d) {
    for (const PersistentValue& value : programs[d].persistent) {
      const bool variable = value.kind == ValueKind::kParameter || value.kind == ValueKind::kState;
      if (!variable || value.of_micro_batch || value.role == ValueRole::kGradient) continue;
      if (copy_of.contains(value.name)) continue;
      variables.try_emplace(
          value.name,
          StageVariable{
              value.name, value.type, value.kind, value.role, value.init, static_cast<int>(d), {}});
    }
  }
  for (const auto& [copy, of] : copy_of) variables.at(of).copies.push_back(copy);
  std::vector<StageVariable> all;
  for (auto& [name, variable] : variables) all.push_back(std::move(variable));
  return all;
}

void GiveRoles(PipelineRole role, PipelineJob& job) {
  role.variables = VariablesOf(job.programs, role);
  Sha256 hash;
  for (const Program& program : job.programs) hash.Add(HashKernelChoices(program));
  role.kernels_sha256 = hash.Hex();
  for (size_t c = 0; c < role.chunks.size(); ++c) {
    PipelineRole::Chunk& chunk = role.chunks[c];
    const ChunkSeconds& seconds = job.chunks[c].seconds;
    chunk.forward_s = seconds.forward_s;
    chunk.backward_s = seconds.backward_s;
    chunk.weights_s = seconds.weights_s;
    chunk.send_forward_s = seconds.send_forward_s;
    chunk.send_backward_s = seconds.send_backward_s;
    chunk.update_s = job.chunks[c].update_s;
  }
  for (size_t d = 0; d < job.programs.size(); ++d) {
    auto own = std::make_shared<PipelineRole>(role);
    own->device = static_cast<int>(d);
    job.programs[d].pipeline = std::move(own);
  }
}

// A cut of the step, planned.
struct PlannedCut {
  std::vector<PipelineChunk> chunks;
  std::vector<Program> programs;       // by device
  std::vector<int64_t> runtime_bytes;  // likewise
  std::vector<ChunkSeconds> nominal;   // by chunk, of a micro batch, on the nominal device
  PipelineRole role;                   // of device 0
};

double MicroSeconds(const ChunkSeconds& seconds) {
  return seconds.forward_s + seconds.backward_s + seconds.weights_s;
}

class Planner {
 public:
  // `step` and `eval` must outlive it.
  Planner(const TrainOptions& options, const PipelineSchedule& schedule, const UntiedStep& step,
          const Graph* eval, const Machine& machine, DType operands)
      : options_(options),
        schedule_(schedule),
        capacity_(std::max(1, LeastCapacity(schedule))),
        step_(step),
        eval_(eval),
        micro_(step.micro),
        update_(step.update),
        machine_(machine),
        operands_(operands) {}

  Result<PipelineJob> Run() {
    const StepPlaces& places = step_.places;
    std::vector<double> node_s = NominalSeconds(micro_, machine_.query());
    std::vector<int64_t> limit_bytes;
    if (options_.fit_bytes > 0)
      limit_bytes.assign(static_cast<size_t>(schedule_.chunks),
                         options_.fit_bytes / chunks_a_device());
    std::optional<PipelineJob> best;
    std::set<std::vector<int>> tried;
    for (int round = 0; round < kRounds; ++round) {
      const StageCosts costs(micro_, update_, places, node_s);
      Result<std::vector<int>> borders = ChooseCuts(costs, RequestFor(limit_bytes));
      if (!borders.ok() && !best) return borders.status();
      if (!borders.ok() || !tried.insert(*borders).second) break;
      RIDGE_ASSIGN_OR_RETURN(const std::vector<PipelineStage> stages,
                             MakeStages(step_, *borders, schedule_.separates_weights));
      RIDGE_ASSIGN_OR_RETURN(PlannedCut cut, PlanStages(stages, *borders, costs));
      Rescale(places, *borders, costs, cut, node_s);
      PipelineJob job = Assemble(std::move(cut));
      if (options_.fit_bytes > 0) limit_bytes = LimitsBehind(job);
      if (!best || IsBetter(job, *best)) best = std::move(job);
    }
    return std::move(*best);
  }

 private:
  int chunks_a_device() const { return schedule_.chunks / schedule_.devices; }

  CutRequest RequestFor(const std::vector<int64_t>& limit_bytes) const {
    CutRequest request;
    request.chunks = schedule_.chunks;
    for (int c = 0; c < schedule_.chunks; ++c) {
      std::vector<int64_t> one(static_cast<size_t>(schedule_.chunks), 0);
      one[static_cast<size_t>(c)] = 1;
      request.kept_micros.push_back(
          MostKeptBytes(schedule_, one)[static_cast<size_t>(schedule_.DeviceOf(c))]);
    }
    request.limit_bytes = limit_bytes;
    return request;
  }

  // What is left for state and kept values beside what the plan of a device takes for all else.
  std::vector<int64_t> LimitsBehind(const PipelineJob& job) const {
    std::vector<int64_t> limits;
    for (size_t c = 0; c < job.chunks.size(); ++c) {
      const size_t d = c % job.ranks.size();
      int64_t counted = job.ranks[d].kept_bytes;
      for (size_t other = d; other < job.chunks.size(); other += job.ranks.size())
        counted += job.chunks[other].state_bytes();
      const int64_t rest = job.ranks[d].peak_bytes - counted;
      limits.push_back(std::max<int64_t>(1, (options_.fit_bytes - rest) / chunks_a_device()));
    }
    return limits;
  }

  bool Fits(const PipelineJob& job) const {
    return options_.fit_bytes == 0 || job.largest_rank().peak_bytes <= options_.fit_bytes;
  }
  bool IsBetter(const PipelineJob& job, const PipelineJob& than) const {
    if (Fits(job) != Fits(than)) return Fits(job);
    return Fits(job) ? job.nominal_s < than.nominal_s
                     : job.largest_rank().peak_bytes < than.largest_rank().peak_bytes;
  }

  Result<PlannedCut> PlanStages(const std::vector<PipelineStage>& stages,
                                const std::vector<int>& borders, const StageCosts& costs) {
    PlannedCut planned;
    planned.chunks.resize(stages.size());
    planned.nominal.resize(stages.size());
    for (size_t c = 0; c < stages.size(); ++c) {
      PipelineChunk& chunk = planned.chunks[c];
      AddState(stages[c], chunk);
      chunk.exchange_bytes = ExchangeBytes(stages, c, update_, micro_);
      chunk.kept_bytes = costs.KeptBytes(stages[c].begin)[static_cast<size_t>(stages[c].end)];
      chunk.forward_bytes = stages[c].forward_bytes;
      chunk.backward_bytes = stages[c].backward_bytes;
      chunk.seconds.send_forward_s = SendSecondsOn(machine_, chunk.forward_bytes);
      chunk.seconds.send_backward_s = SendSecondsOn(machine_, chunk.backward_bytes);
    }
    PipelineCut cut = {&step_, stages, schedule_, capacity_, eval_, {}};
    if (eval_ != nullptr) {
      RIDGE_ASSIGN_OR_RETURN(cut.eval_stages, CutEvaluation(*eval_, step_, borders));
    }
    for (int d = 0; d < schedule_.devices; ++d) {
      RIDGE_ASSIGN_OR_RETURN(Program program, PlanRank(cut, d));
      planned.runtime_bytes.push_back(ProfiledRuntimeBytes(machine_.measured().facts(), program));
      AddSeconds(program, planned);
      planned.programs.push_back(std::move(program));
    }
    planned.role = RoleOf(cut, /*device=*/0);
    return planned;
  }

  Result<Program> PlanRank(const PipelineCut& cut, int device) {
    RIDGE_ASSIGN_OR_RETURN(RankGraphs rank, GraphsOfRank(cut, device));
    RIDGE_ASSIGN_OR_RETURN(const PassSelection passes, ParsePassSpec(options_.passes));
    KernelQuery& kernels = machine_.query();
    RIDGE_ASSIGN_OR_RETURN(
        const RewrittenGraphs rewritten,
        RewriteGraphs(std::move(rank.graphs), {.passes = passes, .operands = operands_}, kernels));
    PlanOptions options = PlanOptionsFor(passes, machine_, Offload::kNone);
    options.copies = std::move(rank.copies);
    return PlanProgram(options_.model, rewritten.graphs, kernels, machine_.measured(), options);
  }

  void AddSeconds(const Program& program, PlannedCut& cut) {
    for (size_t c = 0; c < cut.chunks.size(); ++c) {
      PipelineChunk& chunk = cut.chunks[c];
      double ignored = 0;
      const auto add = [&](const char* what, double& planned_s, double& nominal_s) {
        const StepPlan* step = program.Find(ChunkStep(what, static_cast<int>(c)));
        if (step == nullptr) return;
        chunk.kernels += static_cast<int64_t>(step->nodes.size());
        nominal_s += Sum(NodeSecondsBy(machine_.query().nominal(), program, *step));
        planned_s += Sum(PlannedNodeSeconds(*step));
      };
      add("forward", chunk.seconds.forward_s, cut.nominal[c].forward_s);
      add("backward", chunk.seconds.backward_s, cut.nominal[c].backward_s);
      add("weights", chunk.seconds.weights_s, cut.nominal[c].weights_s);
      add("numbers", chunk.update_s, ignored);
      add("update", chunk.update_s, ignored);
    }
  }

  PipelineJob Assemble(PlannedCut cut) const {
    PipelineJob job;
    job.schedule = schedule_;
    job.capacity = LeastCapacity(schedule_);
    job.chunks = std::move(cut.chunks);
    job.programs = std::move(cut.programs);
    std::vector<ChunkSeconds> seconds;
    for (const PipelineChunk& chunk : job.chunks) seconds.push_back(chunk.seconds);
    job.timeline = TimeSchedule(schedule_, seconds);
    job.nominal_s = TimeSchedule(schedule_, cut.nominal).makespan_s;
    const std::vector<int64_t> kept_micros = MostKeptMicros(schedule_);
    double update_s = 0;
    for (size_t d = 0; d < job.programs.size(); ++d) {
      PipelineRank rank;
      rank.kept_micros = kept_micros[d];
      for (const PersistentValue& value : job.programs[d].persistent)
        rank.kept_bytes += value.of_micro_batch ? value.size_bytes : 0;
      rank.arena_bytes = job.programs[d].arena_bytes;
      rank.peak_bytes = rank.arena_bytes + cut.runtime_bytes[d];
      for (size_t c = d; c < job.chunks.size(); c += job.programs.size())
        rank.update_s += job.chunks[c].update_s;
      update_s = std::max(update_s, rank.update_s);
      job.ranks.push_back(rank);
    }
    for (const PipelineChunk& chunk : job.chunks) job.exchange_bytes += chunk.exchange_bytes;
    job.exchange_s = job.exchange_bytes > 0 ? SendSecondsOn(machine_, job.exchange_bytes) : 0;
    job.step_s = job.timeline.makespan_s + update_s + job.exchange_s;
    GiveRoles(std::move(cut.role), job);
    return job;
  }

  // Nodes of a chunk take as much longer as its plan does.
  void Rescale(const StepPlaces& places, const std::vector<int>& borders, const StageCosts& costs,
               const PlannedCut& cut, std::vector<double>& node_s) const {
    for (size_t n = 0; n < node_s.size(); ++n) {
      if (places.nodes[n].part == StepPart::kAnywhere) continue;
      const auto c = static_cast<size_t>(StageOf(places.nodes[n].position, borders));
      const int begin = c == 0 ? 0 : borders[c - 1];
      const int end = c == borders.size() ? costs.positions() : borders[c];
      const double had_s = costs.Seconds(begin, end);
      if (had_s > 0) node_s[n] *= MicroSeconds(cut.nominal[c]) / had_s;
    }
  }

  const TrainOptions& options_;
  const PipelineSchedule& schedule_;
  const int capacity_;
  const UntiedStep& step_;
  const Graph* const eval_;
  const Graph& micro_;
  const Graph& update_;
  const Machine& machine_;
  const DType operands_;
};

Result<double> OneDeviceSeconds(const TrainOptions& options, const std::vector<NamedGraph>& graphs,
                                DType operands, const Machine& machine) {
  RIDGE_ASSIGN_OR_RETURN(const Program program,
                         PlanGraphs(options.model, graphs, options.passes, operands, machine));
  double seconds = 0;
  for (const StepPlan& step : program.steps)
    seconds += Sum(PlannedNodeSeconds(step)) *
               static_cast<double>(step.name == "micro" ? options.accumulate : 1);
  return seconds;
}

}  // namespace

const PipelineRank& PipelineJob::largest_rank() const {
  return *std::max_element(
      ranks.begin(), ranks.end(),
      [](const PipelineRank& a, const PipelineRank& b) { return a.peak_bytes < b.peak_bytes; });
}

Result<PipelineGraphs> PlainPipelineGraphs(const TrainOptions& options, const Graph& forward,
                                           const ForwardInfo& facts, const Machine& machine) {
  PipelineGraphs graphs;
  RIDGE_ASSIGN_OR_RETURN(graphs.training, MeshTrainingGraphs(options, forward, facts, machine));
  RIDGE_ASSIGN_OR_RETURN(NamedGraph eval, BuildEvalGraph(forward));
  if (options.ema > 0) eval.graph = ReadAverages(std::move(eval.graph));
  graphs.evaluation.push_back(std::move(eval));
  return graphs;
}

double PipelineUpdateSeconds(const Program& program, double (*seconds_of)(const StepPlan&)) {
  const PipelineRole& role = *program.pipeline;
  std::vector<ChunkSeconds> seconds;
  std::vector<double> update_s(static_cast<size_t>(role.schedule.devices), 0.0);
  for (int c = 0; c < role.schedule.chunks; ++c) {
    const PipelineRole::Chunk& chunk = role.chunks[static_cast<size_t>(c)];
    const auto of = [&](const char* what, double planned_s) {
      const StepPlan* step = program.Find(ChunkStep(what, c));
      if (!role.has_chunk(c)) return planned_s;
      return step == nullptr ? 0.0 : seconds_of(*step);
    };
    seconds.push_back({of("forward", chunk.forward_s), of("backward", chunk.backward_s),
                       of("weights", chunk.weights_s), chunk.send_forward_s,
                       chunk.send_backward_s});
    update_s[static_cast<size_t>(role.schedule.DeviceOf(c))] +=
        of("numbers", 0) + of("update", chunk.update_s);
  }
  return TimeSchedule(role.schedule, seconds).makespan_s +
         *std::max_element(update_s.begin(), update_s.end());
}

Result<PipelineJob> PlanPipelineJob(const TrainOptions& options, const PipelineGraphs& graphs,
                                    const Mesh& mesh, const ScheduleKind& kind,
                                    const Machine& machine) {
  RIDGE_RETURN_IF_ERROR(CheckRequest(options, mesh));
  RIDGE_ASSIGN_OR_RETURN(
      const PipelineSchedule schedule,
      MakeSchedule(kind, static_cast<int>(mesh.devices()), static_cast<int>(options.accumulate)));
  RIDGE_RETURN_IF_ERROR(CheckSchedule(schedule, LeastCapacity(schedule)));
  RIDGE_ASSIGN_OR_RETURN(const DType operands, ProductOperands(options.precision, machine));
  Machine alone = machine;  // sums over micro batches are a device's own
  alone.rank = 0;
  alone.ranks = 1;
  RIDGE_ASSIGN_OR_RETURN(const UntiedStep step,
                         UntieWeights(graphs.training.at(0).graph, graphs.training.at(1).graph));
  const Graph* eval = graphs.evaluation.empty() ? nullptr : &graphs.evaluation.front().graph;
  RIDGE_ASSIGN_OR_RETURN(PipelineJob job,
                         Planner(options, schedule, step, eval, alone, operands).Run());
  RIDGE_ASSIGN_OR_RETURN(job.one_device_s,
                         OneDeviceSeconds(options, graphs.training, operands, alone));
  job.mesh = mesh;
  for (size_t d = 0; d < job.programs.size(); ++d)
    job.programs[d].place = MeshPlace{mesh, static_cast<int64_t>(d)};
  job.kind = kind;
  return job;
}

}  // namespace ridge

#include "ridge/train/job/pipeline_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ridge/core/rounding.h"
#include "ridge/pipeline/check_schedule.h"
#include "ridge/pipeline/cuts.h"
#include "ridge/plan/cost/times.h"
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

std::string StepName(const char* what, size_t chunk) { return fmt::format("{}.{}", what, chunk); }

// The graphs of a device's chunks that have nodes.
std::vector<NamedGraph> GraphsOf(const std::vector<PipelineStage>& stages,
                                 const PipelineSchedule& schedule, int device) {
  std::vector<NamedGraph> graphs;
  const auto add = [&](const char* what, size_t c, const Graph& graph) {
    if (!graph.nodes().empty()) graphs.push_back({StepName(what, c), graph});
  };
  for (size_t c = 0; c < stages.size(); ++c) {
    if (schedule.DeviceOf(static_cast<int>(c)) != device) continue;
    add("forward", c, stages[c].forward);
    add("backward", c, stages[c].backward);
    add("weights", c, stages[c].weights);
    add("numbers", c, stages[c].numbers);
    add("update", c, stages[c].update);
  }
  return graphs;
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

// Of a device beside what it keeps for micro batches: variables, one set of the batch's inputs,
// scratch.  Inputs of the graphs that are kept or received are counted as kept.
int64_t PlacedBytes(const Program& program, const Graph& micro, const Graph& update) {
  int64_t bytes = program.arena_bytes;
  for (const PersistentValue& value : program.persistent) {
    const bool of_batch = (micro.FindValue(value.name) != kNoValue &&
                           micro.value(micro.FindValue(value.name)).kind == ValueKind::kInput) ||
                          (update.FindValue(value.name) != kNoValue &&
                           update.value(update.FindValue(value.name)).kind == ValueKind::kInput);
    if (value.kind == ValueKind::kInput && !of_batch) bytes -= value.size_bytes;
  }
  return bytes;
}

// A cut of the step, planned.
struct PlannedCut {
  std::vector<PipelineChunk> chunks;
  std::vector<int64_t> placed_bytes;   // by device
  std::vector<int64_t> runtime_bytes;  // likewise
  std::vector<double> nominal_s;       // by chunk: of a micro batch
};

class Planner {
 public:
  // `step` must outlive it.
  Planner(const TrainOptions& options, const PipelineSchedule& schedule, const UntiedStep& step,
          const Machine& machine, DType operands)
      : options_(options),
        schedule_(schedule),
        step_(step),
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
      RIDGE_ASSIGN_OR_RETURN(const PlannedCut cut, PlanStages(stages, costs));
      PipelineJob job = Assemble(cut);
      if (options_.fit_bytes > 0) limit_bytes = LimitsBehind(job);
      if (!best || IsBetter(job, *best)) best = std::move(job);
      Rescale(places, *borders, costs, cut, node_s);
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
    return Fits(job) ? job.step_s < than.step_s
                     : job.largest_rank().peak_bytes < than.largest_rank().peak_bytes;
  }

  Result<PlannedCut> PlanStages(const std::vector<PipelineStage>& stages, const StageCosts& costs) {
    PlannedCut cut;
    cut.chunks.resize(stages.size());
    cut.nominal_s.resize(stages.size());
    for (size_t c = 0; c < stages.size(); ++c) {
      PipelineChunk& chunk = cut.chunks[c];
      AddState(stages[c], chunk);
      chunk.exchange_bytes = ExchangeBytes(stages, c, update_, micro_);
      chunk.kept_bytes = costs.KeptBytes(stages[c].begin)[static_cast<size_t>(stages[c].end)];
      chunk.forward_bytes = stages[c].forward_bytes;
      chunk.backward_bytes = stages[c].backward_bytes;
      chunk.seconds.send_forward_s = SendSecondsOn(machine_, chunk.forward_bytes);
      chunk.seconds.send_backward_s = SendSecondsOn(machine_, chunk.backward_bytes);
    }
    for (int d = 0; d < schedule_.devices; ++d) {
      RIDGE_ASSIGN_OR_RETURN(const Program program,
                             PlanGraphs(options_.model, GraphsOf(stages, schedule_, d),
                                        options_.passes, operands_, machine_));
      cut.placed_bytes.push_back(PlacedBytes(program, micro_, update_));
      cut.runtime_bytes.push_back(ProfiledRuntimeBytes(machine_.measured().facts(), program));
      AddSeconds(program, cut);
    }
    return cut;
  }

  void AddSeconds(const Program& program, PlannedCut& cut) {
    for (size_t c = 0; c < cut.chunks.size(); ++c) {
      PipelineChunk& chunk = cut.chunks[c];
      const auto seconds = [&](const char* what, bool of_micro) {
        const StepPlan* step = program.Find(StepName(what, c));
        if (step == nullptr) return 0.0;
        chunk.kernels += static_cast<int64_t>(step->nodes.size());
        if (of_micro) cut.nominal_s[c] += Sum(NodeSecondsBy(machine_.query().nominal(), *step));
        return Sum(PlannedNodeSeconds(*step));
      };
      chunk.seconds.forward_s += seconds("forward", true);
      chunk.seconds.backward_s += seconds("backward", true);
      chunk.seconds.weights_s += seconds("weights", true);
      chunk.update_s += seconds("numbers", false) + seconds("update", false);
    }
  }

  PipelineJob Assemble(const PlannedCut& cut) const {
    PipelineJob job;
    job.schedule = schedule_;
    job.capacity = LeastCapacity(schedule_);
    job.chunks = cut.chunks;
    std::vector<int64_t> kept;
    std::vector<ChunkSeconds> seconds;
    for (const PipelineChunk& chunk : cut.chunks) {
      kept.push_back(chunk.kept_bytes);
      seconds.push_back(chunk.seconds);
    }
    job.timeline = TimeSchedule(schedule_, seconds);
    const std::vector<int64_t> kept_bytes = MostKeptBytes(schedule_, kept);
    const std::vector<int64_t> kept_micros = MostKeptMicros(schedule_);
    double update_s = 0;
    for (size_t d = 0; d < kept_bytes.size(); ++d) {
      PipelineRank rank;
      rank.kept_micros = kept_micros[d];
      rank.kept_bytes = kept_bytes[d];
      rank.peak_bytes = cut.placed_bytes[d] + kept_bytes[d] + cut.runtime_bytes[d];
      for (size_t c = d; c < cut.chunks.size(); c += kept_bytes.size())
        rank.update_s += cut.chunks[c].update_s;
      update_s = std::max(update_s, rank.update_s);
      job.ranks.push_back(rank);
    }
    for (const PipelineChunk& chunk : job.chunks) job.exchange_bytes += chunk.exchange_bytes;
    job.exchange_s = job.exchange_bytes > 0 ? SendSecondsOn(machine_, job.exchange_bytes) : 0;
    job.step_s = job.timeline.makespan_s + update_s + job.exchange_s;
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
      if (had_s > 0) node_s[n] *= cut.nominal_s[c] / had_s;
    }
  }

  const TrainOptions& options_;
  const PipelineSchedule& schedule_;
  const UntiedStep& step_;
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

Result<PipelineJob> PlanPipelineJob(const TrainOptions& options, const Graph& forward,
                                    const ForwardInfo& facts, const Mesh& mesh,
                                    const ScheduleKind& kind, const Machine& machine) {
  RIDGE_RETURN_IF_ERROR(CheckRequest(options, mesh));
  RIDGE_ASSIGN_OR_RETURN(
      const PipelineSchedule schedule,
      MakeSchedule(kind, static_cast<int>(mesh.devices()), static_cast<int>(options.accumulate)));
  RIDGE_RETURN_IF_ERROR(CheckSchedule(schedule, LeastCapacity(schedule)));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<NamedGraph> graphs,
                         MeshTrainingGraphs(options, forward, facts, machine));
  RIDGE_ASSIGN_OR_RETURN(const DType operands, ProductOperands(options.precision, machine));
  Machine alone = machine;  // sums over micro batches are a device's own
  alone.rank = 0;
  alone.ranks = 1;
  RIDGE_ASSIGN_OR_RETURN(const UntiedStep step,
                         UntieWeights(graphs.at(0).graph, graphs.at(1).graph));
  RIDGE_ASSIGN_OR_RETURN(PipelineJob job, Planner(options, schedule, step, alone, operands).Run());
  RIDGE_ASSIGN_OR_RETURN(job.one_device_s, OneDeviceSeconds(options, graphs, operands, alone));
  job.mesh = mesh;
  job.kind = kind;
  return job;
}

}  // namespace ridge

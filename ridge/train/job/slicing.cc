#include "ridge/train/job/slicing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "ridge/graph/sample_axis.h"
#include "ridge/plan/cost/reuse.h"
#include "ridge/plan/cost/roofline.h"
#include "ridge/plan/plan_json.h"
#include "ridge/train/job/job.h"

namespace ridge {
namespace {

// More slices must have a predicted time below this share of that of fewer: the roofline
// underestimates small products by up to 5 % (gpt, bert, unet in two slices).
constexpr double kWorthSlicing = 0.95;
// Recomputing a value for x % of the step's time must free at least x % of these bytes per core.
constexpr double kBytesPerCore = 4.0 * (1 << 30);
// All recomputed values together must free this share of the process's bytes.
constexpr double kLeastFreed = 0.03;
constexpr int64_t kManyActivations = int64_t{256} << 20;  // scratch bytes to explain in the report
constexpr int64_t kMostSlices = 1024;
constexpr size_t kMostCandidates = 4;
constexpr size_t kMostNodes = 2000;  // of a forward graph: above, planning it again takes seconds
constexpr int64_t kSharedCacheBytes = int64_t{16} << 20;
constexpr int64_t kCoreCacheBytes = int64_t{1} << 20;
// Reuse within these bytes is a cache hit: other users of the chip have half of the last cache.
constexpr int64_t kReuseBytes = kSharedCacheBytes / 2;

// A forward graph as a job runs it.
struct SlicedForward {
  int64_t slices = 1;
  Graph graph;                 // for one slice of the batch; the whole one for 1
  bool mean_of_slices = true;  // the loss of the batch is the mean of those of the slices
  RecomputeLimits recompute = {};
};

// The forward graph after the passes that pay before differentiation.
Result<Graph> SimplifyForward(const Graph& forward, const std::string& passes,
                              const RewriteRules& rules) {
  RIDGE_ASSIGN_OR_RETURN(const PassSelection selection, ParsePassSpec(passes));
  return RunPasses(forward, ForwardPasses(selection), rules);
}

// The graph with the outputs that training reads, and nothing else.
Graph LossAndLogits(const Graph& forward, const ForwardFacts& facts) {
  Graph graph = forward;
  graph.ClearOutputs();
  graph.AddOutput("loss", facts.loss);
  if (facts.logits != kNoValue) graph.AddOutput("logits", facts.logits);
  return graph;
}

Result<SlicedForward> CutForward(const Graph& forward, const ForwardFacts& facts,
                                 const SampleAxes& axes, int64_t slices) {
  RIDGE_ASSIGN_OR_RETURN(Graph graph, SliceGraph(LossAndLogits(forward, facts), axes, slices));
  const bool mean = axes.axes[static_cast<size_t>(facts.loss)] == kMeanOfSamples;
  return SlicedForward{slices, std::move(graph), mean, {}};
}

TrainingGraphOptions GraphOptions(const TrainOptions& options, const SlicedForward& sliced) {
  TrainingGraphOptions graph;
  graph.optimizer = options.optimizer;
  graph.clip_norm = options.clip_norm;
  graph.accumulate = options.accumulate;
  graph.slices = sliced.slices;
  graph.mean_of_slices = sliced.mean_of_slices;
  return graph;
}

// Plans a job for one number of slices after another.  Results that do not depend on recomputation
// are cached by that number.
class SlicePlanner {
 public:
  explicit SlicePlanner(const SliceQuestion& question) : q_(question) {}

  Result<SlicedProgram> Plan(const SlicedForward& sliced) {
    RIDGE_ASSIGN_OR_RETURN(const DType operands, ProductOperands(q_.options.precision, q_.machine));
    RIDGE_ASSIGN_OR_RETURN(const Graph* simple, Simplified(sliced.graph, sliced.slices));
    RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> train,
                           BuildTrainingGraphs(*simple, GraphOptions(q_.options, sliced)));
    RIDGE_ASSIGN_OR_RETURN(OptimizedGraphs optimized,
                           OptimizeGraphs(std::move(train), q_.options.passes, operands,
                                          sliced.recompute, q_.machine));
    if (q_.with_eval) RIDGE_RETURN_IF_ERROR(AddEval(sliced.slices, operands, optimized));
    SlicedProgram planned;
    planned.slices = sliced.slices;
    if (optimized.recomputed > 0) planned.recompute = std::to_string(optimized.recomputed);
    if (sliced.recompute.every) planned.recompute = "all";
    planned.passes = std::move(optimized.passes);
    RIDGE_ASSIGN_OR_RETURN(planned.program, PlanOptimized(q_.options.model, optimized.graphs,
                                                          q_.options.passes, q_.machine));
    return planned;
  }

 private:
  // The forward graph for so many slices after the passes that pay before differentiation.
  Result<const Graph*> Simplified(const Graph& forward, int64_t slices) {
    if (const auto known = simplified_.find(slices); known != simplified_.end())
      return &known->second;
    RIDGE_ASSIGN_OR_RETURN(
        Graph graph, SimplifyForward(forward, q_.options.passes, q_.machine.backend->rules()));
    return &simplified_.emplace(slices, std::move(graph)).first->second;
  }

  Status AddEval(int64_t slices, DType operands, OptimizedGraphs& to) {
    RIDGE_ASSIGN_OR_RETURN(const OptimizedGraphs* eval, Eval(slices, operands));
    to.graphs.insert(to.graphs.end(), eval->graphs.begin(), eval->graphs.end());
    to.passes.insert(eval->passes.begin(), eval->passes.end());
    return Status();
  }

  Result<const OptimizedGraphs*> Eval(int64_t slices, DType operands) {
    if (const auto known = evals_.find(slices); known != evals_.end()) return &known->second;
    RIDGE_ASSIGN_OR_RETURN(const Graph* whole, Simplified(q_.forward, 1));
    std::vector<NamedGraph> graphs(1);
    RIDGE_ASSIGN_OR_RETURN(graphs[0], BuildEvalGraph(*whole, slices));
    RIDGE_ASSIGN_OR_RETURN(
        OptimizedGraphs eval,
        OptimizeGraphs(std::move(graphs), q_.options.passes, operands, {}, q_.machine));
    return &evals_.emplace(slices, std::move(eval)).first->second;
  }

  const SliceQuestion& q_;
  std::map<int64_t, Graph> simplified_;       // by slices
  std::map<int64_t, OptimizedGraphs> evals_;  // by slices
};

struct Candidate {
  SlicedProgram planned;
  double seconds = 0;
  double cached_s = 0;        // with all bytes in the fastest memory
  int64_t bytes = 0;          // of the process, by the nominal device: choices use no measurement
  int64_t scratch_bytes = 0;  // of the step over samples
};

// Time that the roofline of single additions omits: a whole slice runs between two additions to a
// sum, so the sums stay in a cache only if all of them fit together.
double ColdSumSeconds(const StepPlan& step) {
  int64_t bytes = 0;
  for (const PlannedNode& node : step.nodes) {
    if (node.turn == Turn::kLater) bytes += node.cost.bytes_read + node.cost.bytes_written;
  }
  constexpr double kReadAndWritten = 2.0 / 3;  // the addend was written just now
  if (bytes < kSharedCacheBytes) return 0;
  const double memory = NominalProfile(1).memory.back().bytes_per_s;
  return static_cast<double>(bytes * (step.slices - 1)) * kReadAndWritten / memory;
}

// Seconds of the step with all its bytes in the fastest memory: a lower bound for any number of
// slices.
double CachedSeconds(const StepPlan& step, DeviceProfile nominal) {
  nominal.memory = {{"L1", INT64_MAX, nominal.memory.front().bytes_per_s}};
  return EstimateStep(nominal, step);
}

class Chooser {
 public:
  explicit Chooser(const SliceQuestion& question)
      : q_(question),
        planner_(question),
        nominal_(NominalProfile(question.machine.backend->threads())) {}

  // `whole` may have a requested number of slices; `axes` is null when no others are compared.
  Result<SlicedProgram> Run(const SlicedForward& whole, const SampleAxes* axes) {
    RIDGE_RETURN_IF_ERROR(Add(whole));
    std::vector<SlicedForward> cuts;
    if (axes != nullptr) {
      for (int64_t slices : Worthwhile(candidates_[0].scratch_bytes)) {
        if (!CanGain(slices)) break;
        Result<SlicedForward> sliced = CutForward(q_.forward, q_.facts, *axes, slices);
        if (!sliced.ok()) break;
        cuts.push_back(*std::move(sliced));
        cuts.back().recompute = whole.recompute;
        RIDGE_RETURN_IF_ERROR(Add(cuts.back()));
      }
    }
    return Take(q_.options.recompute == "auto", whole, cuts);
  }

 private:
  Result<SlicedProgram> Take(bool may_recompute, const SlicedForward& whole,
                             std::vector<SlicedForward>& cuts) {
    if (may_recompute) {
      const size_t kept = candidates_.size();
      RIDGE_RETURN_IF_ERROR(Fits(candidates_[0]) ? AddWorthwhile(whole) : AddFitting(0, whole));
      for (size_t i = 1; i < kept && !AnyFits(); ++i)
        RIDGE_RETURN_IF_ERROR(AddFitting(i, cuts[i - 1]));
    }
    Candidate& best = may_recompute ? WithRecompute(Best()) : Best();
    best.planned.keeps_many =
        may_recompute && !best.planned.recomputes() && best.scratch_bytes > kManyActivations;
    EstimateTimes(q_.machine.profile, best.planned.program);
    return std::move(best.planned);
  }

  Status AddRecomputing(SlicedForward forward, const RecomputeLimits& limits) {
    forward.recompute = limits;
    return Add(std::move(forward));
  }

  Status AddWorthwhile(const SlicedForward& whole) {
    const double least =
        kBytesPerCore * q_.machine.backend->threads() / candidates_.front().seconds;
    // A recomputed value is written, so no value frees more bytes per second than memory writes.
    if (least > nominal_.memory.back().bytes_per_s) return Status();
    return AddRecomputing(whole, {.any = true, .least_bytes_per_s = least});
  }

  // `forward` is the candidate `kept` without recomputation.  Adds it with all values recomputed
  // and, if that fits, with fewer.
  Status AddFitting(size_t kept, const SlicedForward& forward) {
    int64_t enough = candidates_[kept].bytes - q_.limit_bytes;
    RIDGE_RETURN_IF_ERROR(AddRecomputing(forward, {.any = true, .every = true}));
    if (!Fits(candidates_.back())) return Status();
    for (int tries = 0; tries < 2; ++tries) {
      RIDGE_RETURN_IF_ERROR(AddRecomputing(forward, {.any = true, .enough_bytes = enough}));
      if (Fits(candidates_.back())) break;
      // The predicted peak is that of row-major, unfused tensors.
      enough += 3 * (candidates_.back().bytes - q_.limit_bytes) / 2;
    }
    return Status();
  }

  bool Fits(const Candidate& c) const { return c.bytes <= q_.limit_bytes; }

  bool AnyFits() const {
    return std::any_of(candidates_.begin(), candidates_.end(),
                       [this](const Candidate& c) { return Fits(c); });
  }

  Status Add(SlicedForward forward) {
    Candidate candidate;
    RIDGE_ASSIGN_OR_RETURN(candidate.planned, planner_.Plan(forward));
    Program& program = candidate.planned.program;
    EstimateTimes(nominal_, program);
    for (const UpdatePart& part : UpdateParts(program, q_.options.accumulate)) {
      const double cold_s =
          ColdSumSeconds(*part.step) + ColdReadSeconds(nominal_, kReuseBytes, *part.step);
      const auto runs = static_cast<double>(part.runs);
      candidate.seconds += (part.step->seconds + cold_s) * runs;
      candidate.cached_s += CachedSeconds(*part.step, nominal_) * runs;
    }
    candidate.bytes = program.arena_bytes + ProfiledRuntimeBytes(nominal_, program);
    candidate.scratch_bytes = program.steps.front().scratch_bytes;
    candidates_.push_back(std::move(candidate));
    return Status();
  }

  // Whether this number of slices could gain enough, or the whole batch does not fit.  The last
  // plan's cost of slicing with all bytes in a cache is extrapolated linearly.
  bool CanGain(int64_t slices) const {
    const Candidate& whole = candidates_.front();
    const Candidate& last = candidates_.back();
    if (whole.bytes > q_.limit_bytes) return true;
    double cached_s = whole.cached_s;
    if (last.planned.slices > whole.planned.slices) {
      cached_s += (last.cached_s - whole.cached_s) *
                  static_cast<double>(slices - whole.planned.slices) /
                  static_cast<double>(last.planned.slices - whole.planned.slices);
    }
    return cached_s < kWorthSlicing * whole.seconds;
  }

  // The numbers of slices to plan; few, since each takes a plan.  Two slices, whose activations
  // need half the memory; and those whose activations fit the last cache, half of it, and the
  // cores' caches.  None if the whole batch's activations fit the cores' caches.
  std::vector<int64_t> Worthwhile(int64_t scratch_bytes) const {
    const int64_t core = kCoreCacheBytes * q_.machine.backend->threads(),
                  shared = kSharedCacheBytes;
    std::vector<int64_t> all;
    if (scratch_bytes <= core) return all;
    for (const int64_t room : {scratch_bytes / 2, shared, shared / 2, core}) {
      const int64_t slices = Divisor((scratch_bytes + room - 1) / std::max<int64_t>(1, room));
      if (slices > 1 && slices <= kMostSlices) all.push_back(slices);
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (all.size() > kMostCandidates) all.resize(kMostCandidates);
    return all;
  }

  // The smallest divisor of the batch that is not below `least`.
  int64_t Divisor(int64_t least) const {
    int64_t divisor = std::clamp<int64_t>(least, 1, q_.facts.batch);
    while (q_.facts.batch % divisor != 0) ++divisor;
    return divisor;
  }

  // The best candidate that fits: recomputing a few values costs less than slicing the batch.
  Candidate& Best() {
    std::vector<Candidate*> fitting;
    for (Candidate& c : candidates_) {
      if (Fits(c)) fitting.push_back(&c);
    }
    std::stable_sort(fitting.begin(), fitting.end(), [](const Candidate* a, const Candidate* b) {
      return a->planned.slices < b->planned.slices;
    });
    const auto smaller = [](const Candidate* a, const Candidate* b) { return a->bytes < b->bytes; };
    if (fitting.empty()) {  // the refusal should name the least that is needed
      for (Candidate& c : candidates_) fitting.push_back(&c);
      return **std::min_element(fitting.begin(), fitting.end(), smaller);
    }
    double fastest = fitting.front()->seconds;
    for (const Candidate* c : fitting) fastest = std::min(fastest, c->seconds);
    // From the least cut on, as a rule the whole batch; of that the fastest form.
    Candidate* best = nullptr;
    for (Candidate* c : fitting) {
      if (best == nullptr && kWorthSlicing * c->seconds <= fastest) best = c;
      if (best != nullptr && c->planned.slices == best->planned.slices &&
          c->seconds < best->seconds)
        best = c;
    }
    return *best;
  }

  // The candidate of equal slices that recomputes, if it frees enough.
  Candidate& WithRecompute(Candidate& chosen) {
    if (chosen.planned.recomputes()) return chosen;  // as it had to, to fit
    for (Candidate& c : candidates_) {
      if (!c.planned.recomputes() || c.planned.slices != chosen.planned.slices) continue;
      const double freed = 1 - static_cast<double>(c.bytes) / static_cast<double>(chosen.bytes);
      if (freed >= kLeastFreed) return c;
    }
    return chosen;
  }

  const SliceQuestion& q_;
  SlicePlanner planner_;
  const DeviceProfile nominal_;
  std::vector<Candidate> candidates_;
};

RecomputeLimits LimitsOf(int64_t recompute) {
  if (recompute == 0 || recompute == kAutoRecompute) return {};
  if (recompute == kRecomputeAll) return {.any = true, .every = true};
  return {.any = true, .most_values = recompute};
}

// So many slices, whatever is faster.
Result<SlicedForward> SliceForward(const Graph& forward, const ForwardFacts& facts,
                                   int64_t slices) {
  if (slices <= 1) return SlicedForward{1, forward, true, {}};
  RIDGE_ASSIGN_OR_RETURN(const SampleAxes axes,
                         FindSampleAxes(forward, {facts.loss}, facts.data_inputs));
  return CutForward(forward, facts, axes, slices);
}

}  // namespace

Result<SlicedProgram> PlanWithSavings(const SliceQuestion& q) {
  RIDGE_ASSIGN_OR_RETURN(const int64_t slices, ParseSlices(q.options.slices));
  RIDGE_ASSIGN_OR_RETURN(SlicedForward asked, SliceForward(q.forward, q.facts, slices));
  RIDGE_ASSIGN_OR_RETURN(const int64_t recompute, ParseRecompute(q.options.recompute));
  asked.recompute = LimitsOf(recompute);
  const bool compare = !q.facts.own_step && q.forward.nodes().size() <= kMostNodes;
  std::optional<SampleAxes> axes;
  if (compare && slices == kAutoSlices && q.facts.batch > 1) {
    Result<SampleAxes> found = FindSampleAxes(q.forward, {q.facts.loss}, q.facts.data_inputs);
    if (found.ok()) axes = *std::move(found);
  }
  if (axes || (compare && recompute == kAutoRecompute))
    return Chooser(q).Run(asked, axes ? &*axes : nullptr);
  return SlicePlanner(q).Plan(asked);
}

}  // namespace ridge

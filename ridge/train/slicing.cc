#include "ridge/train/slicing.h"

#include <algorithm>
#include <vector>

#include "ridge/graph/sample_axis.h"
#include "ridge/graph/sample_laws.h"
#include "ridge/plan/cost/roofline.h"
#include "ridge/plan/plan_json.h"
#include "ridge/train/job.h"

namespace ridge {
namespace {

// A sliced step must be foreseen to take less than this share of the whole one's time: what the
// roofline does not know of small products has cost up to 5 % (gpt, bert, unet in two slices).
constexpr double kWorthSlicing = 0.95;
constexpr int64_t kMostSlices = 1024;
constexpr size_t kMostCandidates = 4;
constexpr size_t kMostNodes = 2000;  // of a forward graph: above, planning it again takes seconds
constexpr int64_t kSharedCacheBytes = int64_t{16} << 20;
constexpr int64_t kCoreCacheBytes = int64_t{1} << 20;

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
  return SlicedForward{slices, std::move(graph), mean};
}

struct Candidate {
  SlicedForward forward;
  double seconds = 0;
  int64_t bytes = 0;          // of the arena
  int64_t scratch_bytes = 0;  // of the step over samples
};

// Sums that lie beside each other in a cache do so only when all of them fit: a whole slice passes
// between two additions.  What the roofline of the single additions leaves out.
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

class Chooser {
 public:
  Chooser(const TrainOptions& options, const Graph& forward, const ForwardFacts& facts,
          int64_t limit_bytes, const Machine& machine)
      : options_(options),
        forward_(forward),
        facts_(facts),
        limit_bytes_(limit_bytes),
        machine_(machine) {}

  Result<SlicedForward> Run(const SampleAxes& axes) {
    RIDGE_RETURN_IF_ERROR(Add({1, forward_, true}));
    for (int64_t slices : Worthwhile(candidates_[0].scratch_bytes)) {
      Result<SlicedForward> sliced = CutForward(forward_, facts_, axes, slices);
      if (!sliced.ok()) break;
      RIDGE_RETURN_IF_ERROR(Add(*std::move(sliced)));
    }
    return std::move(Best().forward);
  }

 private:
  Status Add(SlicedForward forward) {
    Candidate candidate;
    RIDGE_ASSIGN_OR_RETURN(forward.graph, SimplifyForward(forward.graph, options_.passes));
    RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> graphs,
                           BuildTrainingGraphs(forward.graph, GraphOptions(options_, forward)));
    RIDGE_ASSIGN_OR_RETURN(const DType operands, ProductOperands(options_.precision, machine_));
    RIDGE_ASSIGN_OR_RETURN(Program program, PlanGraphs(options_.model, std::move(graphs),
                                                       options_.passes, operands, machine_));
    EstimateTimes(NominalProfile(machine_.backend->threads()), program);
    for (const UpdatePart& part : UpdateParts(program, options_.accumulate)) {
      candidate.seconds +=
          (part.step->seconds + ColdSumSeconds(*part.step)) * static_cast<double>(part.runs);
    }
    candidate.bytes = program.arena_bytes + ProfiledRuntimeBytes(machine_.profile, program);
    candidate.scratch_bytes = program.steps.front().scratch_bytes;
    candidate.forward = std::move(forward);
    candidates_.push_back(std::move(candidate));
    return Status();
  }

  // None for what fits the caches of the cores as it is.  Few: every one is planned.  Two slices,
  // whose activations need half the memory; and those whose activations fit the last cache, half of
  // it, and the caches of the cores.
  std::vector<int64_t> Worthwhile(int64_t scratch_bytes) const {
    const int64_t core = kCoreCacheBytes * machine_.backend->threads(), shared = kSharedCacheBytes;
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
    int64_t divisor = std::clamp<int64_t>(least, 1, facts_.batch);
    while (facts_.batch % divisor != 0) ++divisor;
    return divisor;
  }

  Candidate& Best() {
    std::vector<Candidate*> fitting;
    for (Candidate& c : candidates_) {
      if (c.bytes <= limit_bytes_) fitting.push_back(&c);
    }
    const auto smaller = [](const Candidate* a, const Candidate* b) { return a->bytes < b->bytes; };
    const auto faster = [](const Candidate* a, const Candidate* b) {
      return a->seconds < b->seconds;
    };
    if (fitting.empty()) {  // the refusal should name the least that is needed
      for (Candidate& c : candidates_) fitting.push_back(&c);
      return **std::min_element(fitting.begin(), fitting.end(), smaller);
    }
    Candidate* fastest = *std::min_element(fitting.begin(), fitting.end(), faster);
    Candidate* least_cut = fitting.front();  // as a rule the whole batch
    return fastest->seconds < kWorthSlicing * least_cut->seconds ? *fastest : *least_cut;
  }

  const TrainOptions& options_;
  const Graph& forward_;
  const ForwardFacts& facts_;
  const int64_t limit_bytes_;
  const Machine& machine_;
  std::vector<Candidate> candidates_;
};

// So many slices, whatever is faster.
Result<SlicedForward> SliceForward(const TrainOptions& options, const Graph& forward,
                                   const ForwardFacts& facts, int64_t slices) {
  SlicedForward sliced{1, forward, true};
  if (slices > 1) {
    RIDGE_ASSIGN_OR_RETURN(const SampleAxes axes,
                           FindSampleAxes(forward, {facts.loss}, facts.data_inputs));
    RIDGE_ASSIGN_OR_RETURN(sliced, CutForward(forward, facts, axes, slices));
  }
  RIDGE_ASSIGN_OR_RETURN(sliced.graph, SimplifyForward(sliced.graph, options.passes));
  return sliced;
}

}  // namespace

Result<Graph> SimplifyForward(const Graph& forward, const std::string& passes) {
  RIDGE_ASSIGN_OR_RETURN(const PassSelection selection, ParsePassSpec(passes));
  return RunPasses(forward, ForwardPasses(selection), nullptr);
}

Result<SlicedForward> ChooseSlices(const TrainOptions& options, const Graph& forward,
                                   const ForwardFacts& facts, int64_t limit_bytes,
                                   const Machine& machine) {
  RIDGE_ASSIGN_OR_RETURN(const int64_t slices, ParseSlices(options.slices));
  if (slices != kAutoSlices) return SliceForward(options, forward, facts, slices);
  if (facts.own_step || facts.batch < 2 || forward.nodes().size() > kMostNodes)
    return SliceForward(options, forward, facts, 1);
  const Result<SampleAxes> axes = FindSampleAxes(forward, {facts.loss}, facts.data_inputs);
  if (!axes.ok()) return SliceForward(options, forward, facts, 1);
  return Chooser(options, forward, facts, limit_bytes, machine).Run(*axes);
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

}  // namespace ridge

#include "ridge/plan/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/core/rounding.h"
#include "ridge/core/units.h"
#include "ridge/lower/narrow_inputs.h"
#include "ridge/plan/cost/reuse.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/plan_json.h"
#include "ridge/plan/search/rewrite_graphs.h"
#include "ridge/plan/total.h"

namespace ridge {
namespace {

// More slices must have a predicted time below this share of that of fewer: the roofline
// underestimates small products by up to 5 % (gpt, bert, unet in two slices).
constexpr double kWorthSlicing = 0.95;
// Recomputing a value for x % of the step's time must free at least x % of these bytes per core, or
// of half the process's own bytes where the step's scratch is most of the arena: the nominal device
// foresees twice what copies cost there.
constexpr double kBytesPerCore = 4.0 * (1 << 30);
constexpr double kMostOfArena = 0.7, kOwnBytesShare = 0.5;
// All recomputed values together, and more chunks of logits, must free this share of the process's
// bytes.
constexpr double kLeastFreed = 0.03;
constexpr int64_t kManyActivations = int64_t{256} << 20;  // scratch bytes to explain in the report
constexpr int64_t kMostSlices = 1024;
constexpr size_t kMostCandidates = 4;
constexpr int kMostTries = 5;  // plans that approach a limit
// Logits in chunks: the first number, which is doubled while that pays.  A plan that is x % slower
// must free so many times x % of the bytes.
constexpr int64_t kFirstChunks = 4;
constexpr double kFreedBySlowdown = 10;
// Reuse within 1 / kReuseShare of the last cache is a hit: other users of the chip have the rest.
constexpr int64_t kReuseShare = 2;

struct Candidate {
  PlanChoice planned;
  int order = 0;  // of planning
  double seconds = 0;
  double cached_s = 0;        // with all bytes in the fastest memory
  int64_t bytes = 0;          // of the process, by the nominal device: choices use no measurement
  int64_t scratch_bytes = 0;  // of the step over samples

  bool recomputes() const { return planned.recompute != "off"; }
};

// Time that the roofline of single additions omits: a whole slice runs between two additions to a
// sum, so the sums stay in a cache only if all of them fit together.
double ColdSumSeconds(const DeviceFacts& device, const StepPlan& step) {
  int64_t bytes = 0;
  const Region* loop = MicroBatchLoop(step);
  if (loop == nullptr || loop->peeled.every) return 0;  // a tree's additions are nodes
  for (const int n : loop->peeled.skipped) {
    const Cost& cost = step.nodes[static_cast<size_t>(n)].cost;
    bytes += cost.bytes_read + cost.bytes_written;
  }
  constexpr double kReadAndWritten = 2.0 / 3;  // the addend was written just now
  if (bytes < device.last_cache_bytes) return 0;
  return static_cast<double>(bytes * (step.slices - 1)) * kReadAndWritten /
         device.memory_bytes_per_s;
}

// Seconds of the step with all its bytes in the fastest memory: a lower bound for any number of
// slices.
double CachedSeconds(const CostModel& device, const StepPlan& step) {
  double seconds = 0;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const PlannedNode& node = step.nodes[n];
    seconds +=
        device.CachedSeconds(WorkOf(node), node.choice) * static_cast<double>(RunsOf(step, n));
  }
  return seconds;
}

// As the option --recompute has it.
std::string NameOf(const RecomputeLimits& limits, int64_t values) {
  if (!limits.expensive) return std::to_string(values);
  if (limits.enough_bytes == INT64_MAX) return "full";
  return fmt::format("full:{}", limits.enough_bytes);
}

class PlanSearch {
 public:
  PlanSearch(JobGraphs& graphs, const ProgramRecipe& recipe, KernelQuery& kernels,
             const CostModel& measured, const PlanGoals& goals)
      : graphs_(graphs),
        recipe_(recipe),
        kernels_(kernels),
        measured_(measured),
        goals_(goals),
        nominal_(kernels.nominal()),
        facts_(nominal_.facts()),
        loss_chunks_(goals.loss_chunks.value_or(1)) {}

  Result<PlanChoice> Run() {
    RIDGE_RETURN_IF_ERROR(Add(GivenSlices(), GivenLimits()));
    whole_scratch_bytes_ = candidates_.front().scratch_bytes;
    RIDGE_RETURN_IF_ERROR(goals_.loss_chunks ? CheckChunks(*goals_.loss_chunks) : TryChunks());
    if (goals_.budget) {
      RIDGE_RETURN_IF_ERROR(AddWithin(*goals_.budget));
      return Take(Best());
    }
    if (VariablesExceed(candidates_.front())) {
      RIDGE_RETURN_IF_ERROR(AddLeast());
      return Take(Best());
    }
    if (!goals_.slices) {
      RIDGE_RETURN_IF_ERROR(AddSliced());
      RIDGE_RETURN_IF_ERROR(AddFewestSlices());
    }
    if (!goals_.recompute) RIDGE_RETURN_IF_ERROR(AddRecomputing());
    return Take(goals_.recompute ? Best() : WithRecompute(Best()));
  }

 private:
  int64_t GivenSlices() const { return goals_.slices.value_or(1); }
  RecomputeLimits GivenLimits() const { return goals_.recompute.value_or(RecomputeLimits()); }

  Status CheckChunks(int64_t chunks) const {
    const std::optional<ChunkableLogits>& logits = candidates_.front().planned.logits;
    if (chunks == 1) return Status();
    if (!logits) {
      return InvalidArgument(fmt::format(
          "--loss-chunks is {}; no logits of a cross entropy come from a product and are read row "
          "by row only. hint: leave it out",
          chunks));
    }
    const int64_t slices = GivenSlices(), of_slice = ChunksOf(slices);
    const int64_t possible = CountOfChunks(*logits, of_slice);
    if (!HaveEqualChunks(slices)) {
      return InvalidArgument(fmt::format(
          "--loss-chunks is {}; {} slices of the batch have not equally many of them. hint: "
          "--loss-chunks {}",
          chunks, slices, possible * slices));
    }
    if (possible == of_slice) return Status();
    return InvalidArgument(fmt::format(
        "--loss-chunks is {}; the {} rows of logits cannot be cut so. hint: --loss-chunks {}",
        chunks, logits->rows * slices, possible * slices));
  }

  // Replaces the first candidate by one whose logits are cut into chunks, if that pays; the others
  // have as many.
  Status TryChunks() {
    const std::optional<ChunkableLogits> logits = candidates_.front().planned.logits;
    const auto least = kLeastFreed * static_cast<double>(candidates_.front().bytes);
    if (!logits || static_cast<double>(logits->bytes) < least) return Status();
    if (kernels_.memory().shared && Fits(candidates_.front())) return Status();
    int64_t chunks = 1;
    for (int64_t wanted = std::min(kFirstChunks, logits->rows); wanted <= logits->rows;
         wanted = std::max(2 * wanted, chunks + 1)) {
      chunks = CountOfChunks(*logits, wanted);
      if (chunks > kMostLossChunks) break;
      loss_chunks_ = chunks * GivenSlices();
      RIDGE_ASSIGN_OR_RETURN(Candidate more, Make(GivenSlices(), GivenLimits()));
      const bool pays = ChunksPay(more, candidates_.front());
      if (pays) std::swap(candidates_.front(), more);
      rejected_.push_back(std::move(more));
      if (!pays) break;
    }
    loss_chunks_ = candidates_.front().planned.loss_chunks;
    return Status();
  }

  // Whether a plan with more chunks is better than `before`.
  bool ChunksPay(const Candidate& more, const Candidate& before) const {
    const double freed = 1 - static_cast<double>(more.bytes) / static_cast<double>(before.bytes);
    if (!Fits(before)) return Fits(more) || freed >= kLeastFreed;
    return freed >= std::max(kLeastFreed, kFreedBySlowdown * (more.seconds / before.seconds - 1));
  }

  // Where no plan fits: those that may need least, for the refusal.
  Status AddLeast() {
    const int64_t most = Divisor(std::min(goals_.batch, kMostSlices));
    if (!goals_.slices && most > 1 && most <= kMostSlices)
      RIDGE_RETURN_IF_ERROR(TryAdd(most).status());
    if (goals_.recompute) return Status();
    return Add(GivenSlices(), {.any = true, .expensive = true});
  }

  Status AddSliced() {
    for (const int64_t slices : Worthwhile(candidates_[0].scratch_bytes)) {
      if (!CanGain(slices)) break;
      RIDGE_ASSIGN_OR_RETURN(const bool can_cut, TryAdd(slices));
      if (!can_cut) break;
    }
    return Status();
  }

  // Where neither the whole batch nor a few slices fit: the fewest that do.
  Status AddFewestSlices() {
    if (Fits(candidates_.front()) || candidates_.size() < 2) return Status();
    int64_t slices = Divisor(FewestSlices(candidates_[0], candidates_[1]));
    for (int tries = 0; tries < 2 && slices <= kMostSlices && !IsKnown(slices); ++tries) {
      RIDGE_ASSIGN_OR_RETURN(const bool can_cut, TryAdd(slices));
      if (!can_cut || Fits(candidates_.back()) || slices >= goals_.batch) return Status();
      slices = Divisor(slices + 1);
    }
    return Status();
  }

  // Bytes are a constant and a part that falls with the slices, as two plans have it.
  int64_t FewestSlices(const Candidate& whole, const Candidate& cut) const {
    const auto bytes = static_cast<double>(whole.bytes);
    const auto slices = static_cast<double>(cut.planned.slices);
    const double of_batch = (bytes - static_cast<double>(cut.bytes)) / (1 - 1 / slices);
    const double room = static_cast<double>(goals_.limit_bytes) - (bytes - of_batch);
    if (of_batch <= 0 || room <= 0) return goals_.batch;
    const double most = kMostSlices;
    return static_cast<int64_t>(std::ceil(std::min(of_batch / room, most) - 1e-6));
  }

  bool IsKnown(int64_t slices) const {
    return std::any_of(candidates_.begin(), candidates_.end(),
                       [&](const Candidate& c) { return c.planned.slices == slices; });
  }

  Status AddRecomputing() {
    const size_t kept = candidates_.size();
    RIDGE_RETURN_IF_ERROR(Fits(candidates_[0]) ? AddWorthwhile() : AddFitting(0));
    for (size_t i = 1; i < kept && !AnyFits(); ++i) RIDGE_RETURN_IF_ERROR(AddFitting(i));
    return Status();
  }

  // Values that free much memory for little time, where others have a use for it.
  Status AddWorthwhile() {
    if (!kernels_.memory().shared) return Status();
    const Candidate& whole = candidates_.front();
    const double own_bytes = kOwnBytesShare * static_cast<double>(whole.bytes);
    double bytes = kBytesPerCore * facts_.threads;
    const auto arena = static_cast<double>(whole.planned.program.device_arena_bytes());
    if (static_cast<double>(whole.scratch_bytes) >= kMostOfArena * arena)
      bytes = std::min(bytes, own_bytes);
    const double least = bytes / whole.seconds;
    // A recomputed value is written, so no value frees more bytes per second than memory writes.
    if (least > facts_.memory_bytes_per_s) return Status();
    return Add(whole.planned.slices, {.any = true, .least_bytes_per_s = least});
  }

  // Adds the candidate `kept`, which recomputes nothing, with all cheap values recomputed, and if
  // that does not fit, with all values; if one fits, with fewer.
  Status AddFitting(size_t kept) {
    const int64_t slices = candidates_[kept].planned.slices;
    RIDGE_RETURN_IF_ERROR(Add(slices, {.any = true, .every = true}));
    const bool expensive = !Fits(candidates_.back());
    if (expensive) RIDGE_RETURN_IF_ERROR(Add(slices, {.any = true, .expensive = true}));
    if (!Fits(candidates_.back())) return Status();
    RIDGE_RETURN_IF_ERROR(AddFewer(kept, expensive));
    if (expensive || Fits(candidates_.back())) return Status();
    return AddFewer(kept, /*expensive=*/true);
  }

  // Adds the candidate `kept` with as many values recomputed as make it fit.  The predicted peak is
  // that of row-major, unfused tensors, so what a plan still exceeds is freed in the next, and at
  // least twice as much as in this one.
  Status AddFewer(size_t kept, bool expensive) {
    const int64_t slices = candidates_[kept].planned.slices;
    int64_t enough = Excess(candidates_[kept]);
    for (int tries = 0; tries < kMostTries; ++tries) {
      RIDGE_RETURN_IF_ERROR(
          Add(slices, {.any = true, .enough_bytes = enough, .expensive = expensive}));
      if (Fits(candidates_.back())) break;
      enough += std::max(enough, 3 * Excess(candidates_.back()) / 2);
    }
    return Status();
  }

  Status AddWithin(const ScratchBudget& budget) {
    const Candidate& kept = candidates_.front();
    const int64_t kept_bytes = kept.scratch_bytes;
    const auto share =
        static_cast<int64_t>(budget.share * static_cast<double>(whole_scratch_bytes_));
    most_scratch_bytes_ = std::min(budget.bytes, share);
    if (kept_bytes <= most_scratch_bytes_) return Status();
    RIDGE_RETURN_IF_ERROR(Add(kept.planned.slices, {.any = true, .expensive = true}));
    const int64_t least = candidates_.back().scratch_bytes;
    if (least <= most_scratch_bytes_) return AddFewer(0, /*expensive=*/true);
    return InvalidArgument(fmt::format(
        "--recompute: activations and workspaces take {} with all values recomputed, {} of {} "
        "without; the budget is {}. hint: --slices, or a smaller --batch",
        FormatBytes(least),
        FormatPercent(static_cast<double>(least) / static_cast<double>(whole_scratch_bytes_)),
        FormatBytes(whole_scratch_bytes_), FormatBytes(most_scratch_bytes_)));
  }

  // Whether parameters, optimizer state and inputs alone are above the limit.
  bool VariablesExceed(const Candidate& c) const {
    const Program& program = c.planned.program;
    return c.bytes - (program.arena_bytes - program.persistent_bytes) > goals_.limit_bytes;
  }

  // Bytes above the limits.
  int64_t Excess(const Candidate& c) const {
    return std::max(c.bytes - goals_.limit_bytes, c.scratch_bytes - most_scratch_bytes_);
  }
  bool Fits(const Candidate& c) const { return Excess(c) <= 0; }

  bool AnyFits() const {
    return std::any_of(candidates_.begin(), candidates_.end(),
                       [this](const Candidate& c) { return Fits(c); });
  }

  // Adds a plan in slices; false: the batch can't be cut so.
  Result<bool> TryAdd(int64_t slices) {
    const Status added = Add(slices, GivenLimits());
    if (added.code() == ErrorCode::kUnsupported) return false;
    RIDGE_RETURN_IF_ERROR(added);
    return true;
  }

  Status Add(int64_t slices, const RecomputeLimits& limits) {
    RIDGE_ASSIGN_OR_RETURN(Candidate candidate, Make(slices, limits));
    candidates_.push_back(std::move(candidate));
    return Status();
  }

  Result<Candidate> Make(int64_t slices, const RecomputeLimits& limits) {
    RIDGE_ASSIGN_OR_RETURN(Candidate candidate, MakeCandidate(slices, limits, recipe_.options));
    if (HasCopies(candidate.planned.program)) {
      PlanOptions row_major = recipe_.options;
      row_major.layout = false;
      RIDGE_ASSIGN_OR_RETURN(Candidate other, MakeCandidate(slices, limits, row_major));
      if (CopiesCostMore(candidate, other)) candidate = std::move(other);
    }
    return candidate;
  }

  // Copies in other layouts that live in memory that is the run's alone: there bytes that are not
  // needed are worth something, and the chooser of kernels knows their seconds only.
  bool HasCopies(const Program& program) const {
    if (kernels_.memory().shared) return false;
    const std::vector<PlannedNode>& nodes = program.steps.front().nodes;
    return std::any_of(nodes.begin(), nodes.end(), [](const PlannedNode& node) {
      return node.op == "reorder" && node.choice.input_layouts != node.choice.output_layouts;
    });
  }

  // Whether the copies do not fit, or take a larger share of the bytes than they save of the
  // seconds.
  bool CopiesCostMore(const Candidate& copied, const Candidate& row_major) const {
    if (Fits(copied) != Fits(row_major)) return Fits(row_major);
    return copied.seconds * static_cast<double>(copied.bytes) >
           row_major.seconds * static_cast<double>(row_major.bytes);
  }

  Result<Candidate> MakeCandidate(int64_t slices, const RecomputeLimits& limits,
                                  const PlanOptions& options) {
    Candidate candidate;
    candidate.order = made_++;
    RIDGE_ASSIGN_OR_RETURN(candidate.planned, Plan(slices, limits, options));
    const Program& program = candidate.planned.program;
    for (const UpdatePart& part : UpdateParts(program, goals_.accumulate)) {
      const StepPlan& step = *part.step;
      const std::vector<double> node_s = NodeSecondsBy(nominal_, program, step);
      const double cold_s =
          ColdSumSeconds(facts_, step) +
          ColdReadSeconds(nominal_, facts_.last_cache_bytes / kReuseShare, step, node_s);
      const auto runs = static_cast<double>(part.runs);
      candidate.seconds += (SumOfRuns(step, node_s) + cold_s) * runs;
      candidate.cached_s += CachedSeconds(nominal_, step) * runs;
    }
    candidate.bytes = program.device_arena_bytes() + ProfiledRuntimeBytes(facts_, program) +
                      RecordedBytes(program, goals_.recorded_run_bytes);
    candidate.scratch_bytes = program.steps.front().scratch_bytes;
    if (goals_.offload != Offload::kNone) AddTransfers(candidate);
    return candidate;
  }

  // Windows of the device come, and the link may take longer.
  void AddTransfers(Candidate& candidate) const {
    const OffloadPlan offload = PlanOffload(candidate.planned.program, goals_.offload,
                                            goals_.accumulate, goals_.host_link_bytes_per_s);
    candidate.bytes += offload.window_bytes;
    candidate.seconds = SecondsBesideTransfers(candidate.seconds, offload);
    candidate.cached_s = SecondsBesideTransfers(candidate.cached_s, offload);
  }

  // Of a slice's logits, which have so many times fewer rows than those of the batch.
  int64_t ChunksOf(int64_t slices) const { return CeilDiv(loss_chunks_, slices); }

  Result<PlanChoice> Plan(int64_t slices, const RecomputeLimits& limits,
                          const PlanOptions& options) {
    const int64_t chunks = ChunksOf(slices);
    RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> training, graphs_.Training(slices));
    RIDGE_ASSIGN_OR_RETURN(RewrittenGraphs rewritten, Rewrite(std::move(training), limits, chunks));
    RIDGE_ASSIGN_OR_RETURN(const RewrittenGraphs* evaluation, Evaluation(slices, chunks));
    rewritten.graphs.insert(rewritten.graphs.end(), evaluation->graphs.begin(),
                            evaluation->graphs.end());
    rewritten.passes.insert(evaluation->passes.begin(), evaluation->passes.end());
    RIDGE_ASSIGN_OR_RETURN(rewritten.graphs, NarrowInputs(std::move(rewritten.graphs)));
    PlanChoice planned;
    planned.slices = slices;
    planned.logits = rewritten.logits;
    planned.loss_chunks = goals_.loss_chunks.value_or(1);
    if (!goals_.loss_chunks && planned.logits && chunks > 1)
      planned.loss_chunks = CountOfChunks(*planned.logits, chunks) * slices;
    if (rewritten.recomputed > 0) planned.recompute = NameOf(limits, rewritten.recomputed);
    if (limits.every) planned.recompute = "all";
    planned.passes = std::move(rewritten.passes);
    RIDGE_ASSIGN_OR_RETURN(planned.program, PlanProgram(recipe_.model, rewritten.graphs, kernels_,
                                                        measured_, options));
    return planned;
  }

  Result<RewrittenGraphs> Rewrite(std::vector<NamedGraph> graphs, const RecomputeLimits& limits,
                                  int64_t loss_chunks) {
    return RewriteGraphs(
        std::move(graphs),
        {recipe_.passes, recipe_.operands, limits, loss_chunks, recipe_.group_updates}, kernels_);
  }

  Result<const RewrittenGraphs*> Evaluation(int64_t slices, int64_t loss_chunks) {
    const std::pair key(slices, loss_chunks);
    if (const auto known = evaluations_.find(key); known != evaluations_.end())
      return &known->second;
    RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> graphs, graphs_.Evaluation(slices));
    RIDGE_ASSIGN_OR_RETURN(RewrittenGraphs rewritten, Rewrite(std::move(graphs), {}, loss_chunks));
    return &evaluations_.emplace(key, std::move(rewritten)).first->second;
  }

  PlanChoice Take(Candidate& best) {
    std::vector<const Candidate*> made;
    for (const std::vector<Candidate>* of : {&rejected_, &candidates_}) {
      for (const Candidate& c : *of) made.push_back(&c);
    }
    std::sort(made.begin(), made.end(),
              [](const Candidate* a, const Candidate* b) { return a->order < b->order; });
    std::vector<PlanCandidate> all;
    for (const Candidate* c : made)
      all.push_back({c->planned.slices, c->planned.recompute, c->planned.loss_chunks, c->bytes,
                     c->seconds, Fits(*c), /*chosen=*/c == &best});
    PlanChoice choice = std::move(best.planned);
    choice.candidates = std::move(all);
    choice.keeps_many =
        !goals_.recompute && choice.recompute == "off" && best.scratch_bytes > kManyActivations;
    return choice;
  }

  // Whether this number of slices could gain enough, or the whole batch does not fit.  The last
  // plan's cost of slicing with all bytes in a cache is extrapolated linearly.
  bool CanGain(int64_t slices) const {
    const Candidate& whole = candidates_.front();
    const Candidate& last = candidates_.back();
    if (whole.bytes > goals_.limit_bytes) return true;
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
    const int64_t core = facts_.core_cache_bytes * facts_.threads;
    const int64_t shared = facts_.last_cache_bytes;
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

  // The fewest slices from `least` on; 1: there are none.
  int64_t Divisor(int64_t least) const {
    int64_t slices = DivisorFrom(least, goals_.batch);
    while (!HaveEqualChunks(slices) && slices < goals_.batch)
      slices = DivisorFrom(slices + 1, goals_.batch);
    return HaveEqualChunks(slices) ? slices : 1;
  }

  // Of a number of chunks that is given.
  bool HaveEqualChunks(int64_t slices) const {
    const int64_t chunks = goals_.loss_chunks.value_or(1);
    return chunks <= slices || chunks % slices == 0;
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
    if (chosen.recomputes()) return chosen;  // as it had to, to fit
    for (Candidate& c : candidates_) {
      if (!c.recomputes() || c.planned.slices != chosen.planned.slices) continue;
      const double freed = 1 - static_cast<double>(c.bytes) / static_cast<double>(chosen.bytes);
      if (freed >= kLeastFreed) return c;
    }
    return chosen;
  }

  JobGraphs& graphs_;
  const ProgramRecipe& recipe_;
  KernelQuery& kernels_;
  const CostModel& measured_;
  const PlanGoals& goals_;
  const CostModel& nominal_;
  const DeviceFacts& facts_;
  int64_t most_scratch_bytes_ = INT64_MAX;
  int64_t whole_scratch_bytes_ = 0;  // before logits are cut without being asked for
  std::vector<Candidate> candidates_;
  int made_ = 0;
  std::vector<Candidate> rejected_;  // with other numbers of chunks
  int64_t loss_chunks_ = 1;          // of a whole batch
  std::map<std::pair<int64_t, int64_t>, RewrittenGraphs> evaluations_;  // by slices and chunks
};

}  // namespace

Result<PlanChoice> SearchPlan(JobGraphs& graphs, const ProgramRecipe& recipe, KernelQuery& kernels,
                              const CostModel& measured, const PlanGoals& goals) {
  return PlanSearch(graphs, recipe, kernels, measured, goals).Run();
}

}  // namespace ridge

// reduce_sum, reduce_mean, reduce_max, reduce_min over any axes, f32; sums of bf16 that give f32.
//
// Dimensions are merged into groups that are kept and reduced in turn.  When the last group is
// reduced, each output is a run after a run (row sums); when it is kept, rows are added up
// (column sums).  Threads share the outputs; when there are too few, or when the outermost
// dimension is reduced, they share the reduced elements, write partial results into the workspace,
// and these are combined in order of the part.  Sharing the outermost dimension, as most kernels
// do, a thread reads what it wrote itself (docs/design/0017-far-caches.md). nChw16c is read as [B,
// C/16, H, W, 16], so blocked activations need no reorder.
#include "ridge/graph/ops/shared/reduce.h"

#include <algorithm>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/reduce_runs.h"
#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

// A run of dimensions with one fate.
struct Group {
  int64_t extent = 1;
  int64_t stride = 1;  // between neighbours, in elements of x
  bool reduced = false;
};

// Position of the k-th index tuple over some groups, in elements of x.
int64_t OffsetOf(const std::vector<Group>& groups, int64_t k) {
  int64_t offset = 0;
  for (size_t g = groups.size(); g-- > 0;) {
    offset += k % groups[g].extent * groups[g].stride;
    k /= groups[g].extent;
  }
  return offset;
}

int64_t CountOf(const std::vector<Group>& groups) {
  int64_t count = 1;
  for (const Group& group : groups) count *= group.extent;
  return count;
}

// x as outer groups and one innermost, contiguous group.
struct ReducePlan {
  std::vector<Group> kept, reduced;  // without the innermost
  int64_t run = 1;                   // extent of the innermost group
  bool run_reduced = true;
  int64_t outputs = 1;
  int64_t chunk = 1;  // columns of one work item, when the run is kept
  int64_t items = 1;  // units of work that write different outputs
  bool split_reduced = false;
  // Padded blocks of channels: `blocks` of them hold `channels`; 0 when there is no padding.
  int64_t blocks = 0, channels = 0;

  int64_t kept_count() const { return CountOf(kept); }
  int64_t reduced_count() const { return CountOf(reduced); }
  // Elements over which threads share one output.
  int64_t shared_extent() const {
    return !run_reduced ? reduced_count() : reduced_count() > 1 ? reduced_count() : run;
  }
  int64_t workspace_bytes(int threads) const { return split_reduced ? threads * outputs * 4 : 0; }
};

std::vector<Group> MergeGroups(const Dims& dims, const std::vector<bool>& reduced) {
  std::vector<Group> groups;
  const Dims strides = RowMajorStrides(dims);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    if (!groups.empty() && groups.back().reduced == reduced[d]) {
      groups.back().extent *= dims[d];
      groups.back().stride = strides[d];
    } else {
      groups.push_back({dims[d], strides[d], reduced[d]});
    }
  }
  if (groups.empty()) groups.push_back({1, 1, true});
  return groups;
}

constexpr int64_t kWidestChunk = 1024, kNarrowestChunk = 64;
// Sums of 16 KiB stay in the L1 cache; more rows than this are worth adding up partial sums.
constexpr int64_t kWidestRows = 4096, kFewestRows = 64;
// An outermost dimension is shared from so many elements an output on.
constexpr int64_t kSharedElements = 256;

ReducePlan MakePlan(const OpCall& call, int64_t block, int threads) {
  Dims dims = call.inputs[0].dims;
  std::vector<bool> reduced = *ReducedAxes(call);
  const bool padded = block > 1 && dims[1] % block != 0;
  if (block > 1) {
    dims[1] = CeilDiv(dims[1], block);
    dims.push_back(block);
    reduced.push_back(reduced[1]);
  }
  ReducePlan plan;
  std::vector<Group> groups = MergeGroups(dims, reduced);
  const bool outermost = groups.front().reduced && groups.size() > 1 &&
                         call.inputs[0].elements() >= kSharedElements * call.outputs[0].elements();
  plan.run = groups.back().extent;
  plan.run_reduced = groups.back().reduced;
  groups.pop_back();
  for (const Group& group : groups) (group.reduced ? plan.reduced : plan.kept).push_back(group);
  plan.outputs = plan.kept_count() * (plan.run_reduced ? 1 : plan.run);
  plan.items = plan.kept_count();
  if (!plan.run_reduced) {
    const int64_t share = RoundUpFloats(plan.run / threads);
    plan.chunk = std::clamp(share, kNarrowestChunk, kWidestChunk);
    plan.items *= CeilDiv(plan.run, plan.chunk);
  }
  // The rows of one matrix: each thread's own are one piece of memory, read as fast as it comes.
  const bool matrix = !plan.run_reduced && plan.kept.empty() && plan.reduced.size() == 1 &&
                      plan.run <= kWidestRows && plan.reduced_count() >= kFewestRows * threads;
  if (matrix) {
    plan.chunk = plan.run;
    plan.items = 1;
  }
  plan.split_reduced =
      threads > 1 && (outermost || plan.items < threads) && plan.shared_extent() >= 2 * threads;
  if (padded) {
    plan.split_reduced = false;
    plan.blocks = dims[1];
    plan.channels = call.inputs[0].dims[1];
    plan.outputs = call.outputs[0].elements();
  }
  return plan;
}

// T: float, or uint16_t for bf16.
template <typename T>
class ReduceKernel : public Kernel {
 public:
  ReduceKernel(ReducePlan plan, Reduction kind, double divisor, int threads)
      : plan_(std::move(plan)), kind_(kind), divisor_(divisor), threads_(threads) {}

  Status Run(const KernelBuffers& buffers) override {
    const auto* x = static_cast<const T*>(buffers.inputs[0]);
    auto* y = static_cast<float*>(buffers.outputs[0]);
    if (plan_.split_reduced) {
      RunShared(x, static_cast<float*>(buffers.workspace), y);
    } else {
      ParallelFor(threads_, plan_.items, 1, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item)
          RunItem(x, item, {0, plan_.shared_extent()}, y);
      });
    }
    if (divisor_ != 1) Divide(y);
    return Status();
  }

 private:
  void RunShared(const T* x, float* partial, float* y) const {
    ForEachPart(threads_, [&](int part) {
      const Range range = PartOf(plan_.shared_extent(), threads_, part);
      for (int64_t item = 0; item < plan_.items; ++item)
        RunItem(x, item, range, partial + part * plan_.outputs);
    });
    for (int64_t o = 0; o < plan_.outputs; ++o) {
      double sum = partial[o];
      for (int part = 1; part < threads_; ++part)
        sum = Combine(kind_, sum, partial[part * plan_.outputs + o]);
      y[o] = static_cast<float>(sum);
    }
  }

  // One unit of work over a part of the shared extent; `y` is the whole output or a copy of it.
  void RunItem(const T* x, int64_t item, Range range, float* y) const {
    if (plan_.run_reduced) {
      y[item] = static_cast<float>(ReduceOne(x + OffsetOf(plan_.kept, item), range));
      return;
    }
    const int64_t chunks = CeilDiv(plan_.run, plan_.chunk);
    const int64_t kept = item / chunks, column = item % chunks * plan_.chunk;
    int64_t columns = std::min(plan_.chunk, plan_.run - column), first = kept * plan_.run;
    if (plan_.blocks > 0) {  // kept: block of channels of one sample, whose run is one chunk
      const int64_t channel = kept % plan_.blocks * plan_.run;
      first = kept / plan_.blocks * plan_.channels + channel;
      columns = std::min(columns, plan_.channels - channel);
    }
    float* out = y + first + column;
    std::fill_n(out, columns, static_cast<float>(ReductionStart(kind_)));
    AddRows(x + OffsetOf(plan_.kept, kept) + column, range, columns, out);
  }

  double ReduceOne(const T* x, Range range) const {
    if (plan_.reduced.empty()) return ReduceRun(kind_, x + range.begin, range.end - range.begin);
    if (plan_.reduced_count() == 1) return ReduceRun(kind_, x, plan_.run);
    double result = ReductionStart(kind_);
    for (int64_t r = range.begin; r < range.end; ++r)
      result = Combine(kind_, result, ReduceRun(kind_, x + OffsetOf(plan_.reduced, r), plan_.run));
    return result;
  }

  // Rows of the innermost reduced group lie at one stride; the groups around it are walked.
  void AddRows(const T* x, Range range, int64_t columns, float* out) const {
    if (plan_.reduced.empty()) {
      ReduceRows(kind_, x, 0, range.end - range.begin, columns, out);
      return;
    }
    const Group& inner = plan_.reduced.back();
    for (int64_t r = range.begin; r < range.end;) {
      const int64_t rows = std::min(range.end - r, inner.extent - r % inner.extent);
      ReduceRows(kind_, x + OffsetOf(plan_.reduced, r), inner.stride, rows, columns, out);
      r += rows;
    }
  }

  void Divide(float* y) const {
    for (int64_t o = 0; o < plan_.outputs; ++o) y[o] = static_cast<float>(y[o] / divisor_);
  }

  const ReducePlan plan_;
  const Reduction kind_;
  const double divisor_;
  const int threads_;
};

Reduction KindOf(const OpDef& op) {
  if (op.name == "reduce_max") return Reduction::kMax;
  if (op.name == "reduce_min") return Reduction::kMin;
  return Reduction::kSum;
}

// Blocked outputs would have to stay blocked: only where channels are kept and all behind them is
// reduced is the row-major output what falls out.
bool TakesBlocked(const OpCall& call) {
  const std::vector<bool> reduced = *ReducedAxes(call);
  return reduced.size() == 4 && !reduced[1] && reduced[2] && reduced[3];
}

void OfferLayout(const CandidateQuery& q, LayoutId layout, Candidates& candidates) {
  const auto blocks = ChannelBlocksOf(q.call.inputs[0].dims, layout);
  if (!blocks || (blocks->block > 1 && !TakesBlocked(q.call))) return;
  KernelChoice& choice = candidates.Add();
  choice.input_layouts[0] = layout;
  choice.workspace_bytes =
      MakePlan(q.call, blocks->block, q.threads()).workspace_bytes(q.threads());
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  if (q.call.outputs[0].dtype != DType::kF32) return refusal::kDType;
  if (q.available_layout(0) != kRowMajor) OfferLayout(q, q.available_layout(0), candidates);
  OfferLayout(q, kRowMajor, candidates);
  return nullptr;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const OpCall& call = q.call;
  const int threads = q.threads();
  const auto blocks = ChannelBlocksOf(call.inputs[0].dims, choice.input_layouts.at(0));
  const double width = static_cast<double>(call.inputs[0].elements()) /
                       static_cast<double>(call.outputs[0].elements());
  const double divisor = q.op.name == "reduce_mean" ? width : 1;
  ReducePlan plan = MakePlan(call, blocks ? blocks->block : 1, threads);
  if (call.inputs[0].dtype == DType::kBF16) {
    return std::unique_ptr<Kernel>(
        std::make_unique<ReduceKernel<uint16_t>>(std::move(plan), KindOf(q.op), divisor, threads));
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<ReduceKernel<float>>(std::move(plan), KindOf(q.op), divisor, threads));
}

}  // namespace

KernelDef ReduceKernelDef() {
  return {.name = "cpu.reduce",
          .ops = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"},
          .dtypes = {DType::kF32, DType::kBF16},
          .offer = Offer,
          .make = Make};
}

}  // namespace ridge::cpu

// reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_log_sum_exp over any axes, f32; sums of
// bf16 that give f32.
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
struct ReduceParams {
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

ReduceParams MakeParams(const OpCall& call, int64_t block, int threads) {
  Dims dims = call.inputs[0].dims;
  std::vector<bool> reduced = *ReducedAxes(call);
  const bool padded = block > 1 && dims[1] % block != 0;
  if (block > 1) {
    dims[1] = CeilDiv(dims[1], block);
    dims.push_back(block);
    reduced.push_back(reduced[1]);
  }
  ReduceParams params;
  std::vector<Group> groups = MergeGroups(dims, reduced);
  const bool outermost = groups.front().reduced && groups.size() > 1 &&
                         call.inputs[0].elements() >= kSharedElements * call.outputs[0].elements();
  params.run = groups.back().extent;
  params.run_reduced = groups.back().reduced;
  groups.pop_back();
  for (const Group& group : groups) (group.reduced ? params.reduced : params.kept).push_back(group);
  params.outputs = params.kept_count() * (params.run_reduced ? 1 : params.run);
  params.items = params.kept_count();
  if (!params.run_reduced) {
    const int64_t share = RoundUpFloats(params.run / threads);
    params.chunk = std::clamp(share, kNarrowestChunk, kWidestChunk);
    params.items *= CeilDiv(params.run, params.chunk);
  }
  // The rows of one matrix: each thread's own are one piece of memory, read as fast as it comes.
  const bool matrix = !params.run_reduced && params.kept.empty() && params.reduced.size() == 1 &&
                      params.run <= kWidestRows && params.reduced_count() >= kFewestRows * threads;
  if (matrix) {
    params.chunk = params.run;
    params.items = 1;
  }
  params.split_reduced =
      threads > 1 && (outermost || params.items < threads) && params.shared_extent() >= 2 * threads;
  if (padded) {
    params.split_reduced = false;
    params.blocks = dims[1];
    params.channels = call.inputs[0].dims[1];
    params.outputs = call.outputs[0].elements();
  }
  return params;
}

// A pass over x: what becomes of a run, and of rows whose first column gives output `o`.
struct PlainPass {
  Reduction kind;

  double start() const { return ReductionStart(kind); }
  double Both(double a, double b) const { return Combine(kind, a, b); }
  template <typename T>
  double Run(const T* x, int64_t count, int64_t /*o*/) const {
    return ReduceRun(kind, x, count);
  }
  template <typename T>
  void Rows(const T* x, int64_t stride, int64_t rows, int64_t columns, int64_t /*o*/,
            float* acc) const {
    ReduceRows(kind, x, stride, rows, columns, acc);
  }
};

// Sums of exp(x - largest[o]).
struct ExpPass {
  const float* largest;

  double start() const { return 0; }
  double Both(double a, double b) const { return a + b; }
  template <typename T>
  double Run(const T* x, int64_t count, int64_t o) const {
    return SumExpRun(x, count, largest[o]);
  }
  template <typename T>
  void Rows(const T* x, int64_t stride, int64_t rows, int64_t columns, int64_t o,
            float* acc) const {
    SumExpRows(x, stride, rows, columns, largest + o, acc);
  }
};

// The outputs of one unit of work.
struct Outputs {
  int64_t first, count;
};

// Takes passes over x of type T: float, or uint16_t for bf16.
template <typename T>
class ReduceWalk {
 public:
  ReduceWalk(ReduceParams params, int threads) : params_(std::move(params)), threads_(threads) {}

  const ReduceParams& params() const { return params_; }

  // do_item(item) for each unit of work, on all threads.  REQUIRES: not split_reduced.
  template <typename DoItem>
  void ForEachItem(const DoItem& do_item) const {
    ParallelFor(threads_, params_.items, 1, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) do_item(item);
    });
  }

  Outputs OutputsOf(int64_t item) const {
    if (params_.run_reduced) return {item, 1};
    const int64_t chunks = CeilDiv(params_.run, params_.chunk);
    const int64_t kept = item / chunks, column = item % chunks * params_.chunk;
    int64_t columns = std::min(params_.chunk, params_.run - column), first = kept * params_.run;
    if (params_.blocks > 0) {  // kept: block of channels of one sample, whose run is one chunk
      const int64_t channel = kept % params_.blocks * params_.run;
      first = kept / params_.blocks * params_.channels + channel;
      columns = std::min(columns, params_.channels - channel);
    }
    return {first + column, columns};
  }

  // One unit of work; `y` is the whole output.
  template <typename Pass>
  void RunItem(const Pass& pass, const T* x, int64_t item, float* y) const {
    RunItem(pass, x, item, {0, params_.shared_extent()}, y);
  }

  // The whole pass, threads sharing the reduced elements.  REQUIRES: split_reduced.
  template <typename Pass>
  void RunShared(const Pass& pass, const T* x, float* partial, float* y) const {
    ForEachPart(threads_, [&](int part) {
      const Range range = PartOf(params_.shared_extent(), threads_, part);
      for (int64_t item = 0; item < params_.items; ++item)
        RunItem(pass, x, item, range, partial + part * params_.outputs);
    });
    for (int64_t o = 0; o < params_.outputs; ++o) {
      double sum = partial[o];
      for (int part = 1; part < threads_; ++part)
        sum = pass.Both(sum, partial[part * params_.outputs + o]);
      y[o] = static_cast<float>(sum);
    }
  }

 private:
  // Over a part of the shared extent; `y` is the whole output or a copy of it.
  template <typename Pass>
  void RunItem(const Pass& pass, const T* x, int64_t item, Range range, float* y) const {
    if (params_.run_reduced) {
      const T* run = x + OffsetOf(params_.kept, item);
      y[item] = static_cast<float>(ReduceOne(pass, run, range, item));
      return;
    }
    const int64_t chunks = CeilDiv(params_.run, params_.chunk);
    const int64_t column = item % chunks * params_.chunk;
    const Outputs outputs = OutputsOf(item);
    std::fill_n(y + outputs.first, outputs.count, static_cast<float>(pass.start()));
    AddRows(pass, x + OffsetOf(params_.kept, item / chunks) + column, range, outputs, y);
  }

  template <typename Pass>
  double ReduceOne(const Pass& pass, const T* x, Range range, int64_t o) const {
    if (params_.reduced.empty()) return pass.Run(x + range.begin, range.end - range.begin, o);
    if (params_.reduced_count() == 1) return pass.Run(x, params_.run, o);
    double result = pass.start();
    for (int64_t r = range.begin; r < range.end; ++r)
      result = pass.Both(result, pass.Run(x + OffsetOf(params_.reduced, r), params_.run, o));
    return result;
  }

  // Rows of the innermost reduced group have one stride; the groups around it are walked.
  template <typename Pass>
  void AddRows(const Pass& pass, const T* x, Range range, Outputs to, float* y) const {
    float* out = y + to.first;
    if (params_.reduced.empty()) {
      pass.Rows(x, 0, range.end - range.begin, to.count, to.first, out);
      return;
    }
    const Group& inner = params_.reduced.back();
    for (int64_t r = range.begin; r < range.end;) {
      const int64_t rows = std::min(range.end - r, inner.extent - r % inner.extent);
      pass.Rows(x + OffsetOf(params_.reduced, r), inner.stride, rows, to.count, to.first, out);
      r += rows;
    }
  }

  const ReduceParams params_;
  const int threads_;
};

template <typename T>
class ReduceKernel : public HostKernel<ReduceKernel<T>> {
 public:
  ReduceKernel(ReduceParams params, Reduction kind, double divisor, int threads)
      : walk_(std::move(params), threads), pass_{kind}, divisor_(divisor) {}

  Status Run(const KernelBuffers& buffers) {
    const auto* x = static_cast<const T*>(buffers.inputs[0]);
    auto* y = static_cast<float*>(buffers.outputs[0]);
    if (walk_.params().split_reduced) {
      walk_.RunShared(pass_, x, static_cast<float*>(buffers.workspace), y);
    } else {
      walk_.ForEachItem([&](int64_t item) { walk_.RunItem(pass_, x, item, y); });
    }
    if (divisor_ != 1) Divide(y);
    return Status();
  }

 private:
  void Divide(float* y) const {
    for (int64_t o = 0; o < walk_.params().outputs; ++o) y[o] = static_cast<float>(y[o] / divisor_);
  }

  const ReduceWalk<T> walk_;
  const PlainPass pass_;
  const double divisor_;
};

// y = largest + log(sum of exp(x - largest)), in two passes over x; the second reads from a cache
// what threads do not share.
template <typename T>
class LogSumExpKernel : public HostKernel<LogSumExpKernel<T>> {
 public:
  LogSumExpKernel(ReduceParams params, int threads) : walk_(std::move(params), threads) {}

  Status Run(const KernelBuffers& buffers) {
    const auto* x = static_cast<const T*>(buffers.inputs[0]);
    auto* y = static_cast<float*>(buffers.outputs[0]);
    auto* sums = static_cast<float*>(buffers.workspace);
    const int64_t outputs = walk_.params().outputs;
    if (walk_.params().split_reduced) {
      walk_.RunShared(kLargest, x, sums + outputs, y);
      walk_.RunShared(ExpPass{y}, x, sums + outputs, sums);
      AddLog(sums, outputs, y);
      return Status();
    }
    walk_.ForEachItem([&](int64_t item) {
      const Outputs to = walk_.OutputsOf(item);
      walk_.RunItem(kLargest, x, item, y);
      walk_.RunItem(ExpPass{y}, x, item, sums);
      AddLog(sums + to.first, to.count, y + to.first);
    });
    return Status();
  }

 private:
  static constexpr PlainPass kLargest{Reduction::kMax};
  const ReduceWalk<T> walk_;
};

bool IsLogSumExp(const OpDef& op) { return op.name == "reduce_log_sum_exp"; }

int64_t WorkspaceBytes(const CandidateQuery& q, const ReduceParams& params) {
  const int64_t sums = IsLogSumExp(q.op) ? params.outputs * 4 : 0;
  return sums + params.workspace_bytes(q.threads());
}

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
  choice.workspace_bytes = WorkspaceBytes(q, MakeParams(q.call, blocks->block, q.threads()));
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  if (q.call.outputs[0].dtype != DType::kF32) return refusal::kDType;
  if (q.available_layout(0) != kRowMajor) OfferLayout(q, q.available_layout(0), candidates);
  OfferLayout(q, kRowMajor, candidates);
  return nullptr;
}

template <typename T>
std::unique_ptr<Kernel> MakeOf(const CandidateQuery& q, ReduceParams params) {
  if (IsLogSumExp(q.op))
    return std::make_unique<LogSumExpKernel<T>>(std::move(params), q.threads());
  const double width = static_cast<double>(q.call.inputs[0].elements()) /
                       static_cast<double>(q.call.outputs[0].elements());
  return std::make_unique<ReduceKernel<T>>(std::move(params), KindOf(q.op),
                                           q.op.name == "reduce_mean" ? width : 1, q.threads());
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const auto blocks = ChannelBlocksOf(q.call.inputs[0].dims, choice.input_layouts.at(0));
  ReduceParams params = MakeParams(q.call, blocks ? blocks->block : 1, q.threads());
  if (q.call.inputs[0].dtype == DType::kBF16) return MakeOf<uint16_t>(q, std::move(params));
  return MakeOf<float>(q, std::move(params));
}

}  // namespace

KernelDef ReduceKernelDef() {
  return {.name = "cpu.reduce",
          .ops = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_log_sum_exp"},
          .dtypes = {DType::kF32, DType::kBF16},
          .offer = Offer,
          .make = Make};
}

}  // namespace ridge::cpu

// attention and its gradient, f32.
//
// Forward: a task is a block of queries of one head; tasks share nothing.
// Backward: a task is one head of k and v with all heads of q that read it, so no two tasks add to
// one number of dk or dv.  Where that makes too few tasks the keys are cut into chunks, each chunk
// writes its own dq, and these are added in order.  The order of all sums depends on the number of
// threads only.
//
// Where rows of k and v are apart (heads inside a projection) a thread copies those of its head
// side by side first, and adds dk and dv up side by side.  Reading them in place was slower than
// transposes of the whole tensors: 256 bytes from each page are too few for the prefetchers.
#include <algorithm>
#include <tuple>
#include <utility>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/attention_problem.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

using Problem = AttentionProblem;

class AttentionKernel : public Kernel {
 public:
  AttentionKernel(const OpCall& call, int threads) : p_(call, kAttentionMask), threads_(threads) {}

  static int64_t WorkspaceFloats(const OpCall& call, int threads) {
    return threads * AttentionKernel(call, threads).Scratch();
  }

  Status Run(const KernelBuffers& b) override {
    const int64_t blocks = CeilDiv(p_.e.queries, kTileQueries);
    const int64_t heads = p_.e.batch * p_.e.heads;
    // Whole heads where there are enough of them.  Else blocks in turn, because causal blocks grow
    // with their number.
    const bool whole = heads % threads_ == 0 || heads >= 4 * threads_;
    const int64_t unit = whole ? blocks : 1;
    ForEachPart(threads_, [&](int part) {
      float* copy = static_cast<float*>(b.workspace) + part * Scratch();
      Task task{copy + p_.CopyFloats(), copy, -1, {}, {}};
      for (int64_t first = part * unit; first < heads * blocks; first += threads_ * unit) {
        task.ahead = RowsAhead();
        if (whole) AddRowsAfter(b, first / blocks, task.ahead);
        for (int64_t k = first; k < first + unit; ++k)
          RunBlock(b, k / blocks, k % blocks * kTileQueries, task);
      }
    });
    return Status();
  }

 private:
  // What a thread carries from block to block.
  struct Task {
    float *scratch, *copy;
    int64_t kv_head;  // whose k and v it has; -1: none
    std::pair<const float*, const float*> kv;
    RowsAhead ahead;
  };

  // What the thread that computes `head` will touch after it.
  void AddRowsAfter(const KernelBuffers& b, int64_t head, RowsAhead& ahead) const {
    const int64_t next = head + threads_;
    if (next >= p_.e.batch * p_.e.heads) return;
    if (p_.KeyHead(next) != p_.KeyHead(head)) p_.AddKeys(b.inputs, p_.KeyHead(next), ahead);
    p_.AddQueries(b.inputs[0], next, ahead);
    p_.AddResults(b.outputs[0], next, ahead);
    ahead.ShareOut(p_.plan.ForwardFetches());
  }

  int64_t Scratch() const { return RoundUpFloats(p_.plan.ForwardScratch()) + p_.CopyFloats(); }

  void RunBlock(const KernelBuffers& b, int64_t head, int64_t begin, Task& task) const {
    const int64_t end = std::min(begin + kTileQueries, p_.e.queries);
    if (const int64_t kv = p_.KeyHead(head); kv != task.kv_head) {
      task.kv = p_.Keys(b, kv, task.copy);
      task.kv_head = kv;
    }
    auto* y =
        static_cast<float*>(b.outputs[0]) + p_.views.y.At(head / p_.e.heads, head % p_.e.heads, 0);
    auto* logsumexp = static_cast<float*>(b.outputs[1]) + head * p_.e.queries;
    AttentionHead operands = p_.Head(b, head, task.kv, kAttentionMask);
    operands.ahead = &task.ahead;
    AttentionForward(p_.plan, operands, begin, end, y, logsumexp, task.scratch);
  }

  const Problem p_;
  const int threads_;
};

// Into how many runs the keys of a head are cut, and how long they are.
struct KeyChunks {
  int64_t count = 1, keys = 0;

  KeyChunks(const AttentionExtents& e, int threads) {
    const int64_t heads = e.batch * e.kv_heads, tiles = CeilDiv(e.keys, kTileKeys);
    const int64_t enough = heads % threads == 0 || heads >= 4 * threads ? 1 : 4 * threads / heads;
    const int64_t tiles_each = (tiles + enough - 1) / std::max<int64_t>(std::min(enough, tiles), 1);
    keys = std::max<int64_t>(tiles_each, 1) * kTileKeys;
    count = CeilDiv(e.keys, keys);
  }
};

class AttentionGradKernel : public Kernel {
 public:
  AttentionGradKernel(const OpCall& call, int threads)
      : p_(call, kAttentionGradMask), chunks_(p_.e, threads), threads_(threads) {}

  static int64_t WorkspaceFloats(const OpCall& call, int threads) {
    const AttentionGradKernel kernel(call, threads);
    return threads * kernel.Scratch() + kernel.PartialFloats();
  }

  Status Run(const KernelBuffers& b) override {
    const int64_t tasks = p_.e.batch * p_.e.kv_heads * chunks_.count;
    auto* scratch = static_cast<float*>(b.workspace);
    ForEachPart(threads_, [&](int part) {
      for (int64_t task = part; task < tasks; task += threads_)
        RunChunk(b, task / chunks_.count, task % chunks_.count, scratch + part * Scratch());
    });
    if (chunks_.count > 1) AddPartials(b);
    return Status();
  }

 private:
  int64_t Scratch() const { return RoundUpFloats(p_.plan.BackwardScratch()) + 2 * p_.CopyFloats(); }
  int64_t QueryFloats() const { return p_.e.batch * p_.e.heads * p_.e.queries * p_.e.head_dim; }
  int64_t PartialFloats() const {
    return chunks_.count > 1 ? chunks_.count * RoundUpFloats(QueryFloats()) : 0;
  }
  // [B,H,T,D] of what a chunk of keys gives.
  float* Partial(const KernelBuffers& b, int64_t chunk) const {
    return static_cast<float*>(b.workspace) + threads_ * Scratch() +
           chunk * RoundUpFloats(QueryFloats());
  }
  // Where a head's dq goes, and from one row to the next.
  std::pair<float*, int64_t> QueryGrads(const KernelBuffers& b, int64_t head, int64_t chunk) const {
    const AttentionExtents& e = p_.e;
    if (chunks_.count > 1) return {Partial(b, chunk) + head * e.queries * e.head_dim, e.head_dim};
    const int64_t at = p_.views.q.At(head / e.heads, head % e.heads, 0);
    return {static_cast<float*>(b.outputs[0]) + at, p_.views.q.row};
  }

  // dk and dv of these keys of head `kv`, and what they give to dq of the heads that read it.
  void RunChunk(const KernelBuffers& b, int64_t kv, int64_t chunk, float* scratch) const {
    const AttentionExtents& e = p_.e;
    const int64_t begin = chunk * chunks_.keys, end = std::min(begin + chunks_.keys, e.keys);
    float* copy = scratch + RoundUpFloats(p_.plan.BackwardScratch());
    const auto keys = p_.Keys(b, kv, copy);
    float *dk = KeyGrad(b, kv), *dv = ValueGrad(b, kv);  // where they end up
    float* sum_dk = p_.copies() ? copy + p_.CopyFloats() : dk;
    float* sum_dv = p_.copies() ? sum_dk + e.keys * e.head_dim : dv;
    std::fill(sum_dk + begin * e.head_dim, sum_dk + end * e.head_dim, 0.0F);
    std::fill(sum_dv + begin * e.value_dim, sum_dv + end * e.value_dim, 0.0F);
    for (int64_t g = 0; g < e.group(); ++g) {
      const int64_t head = kv * e.group() + g;
      AttentionGrads grads = Grads(b, head, sum_dk, sum_dv);
      std::tie(grads.dq, grads.dq_row) = QueryGrads(b, head, chunk);
      AttentionHead operands = p_.Head(b, head, keys, kAttentionGradMask);
      RowsAhead ahead;
      if (chunks_.count == 1) AddRowsAfter(b, head, ahead);
      operands.ahead = &ahead;
      AttentionBackward(p_.plan, operands, grads, begin, end, scratch);
    }
    if (!p_.copies()) return;
    const int64_t k_row = p_.views.k.row, v_row = p_.views.v.row;
    CopyRows(sum_dk + begin * e.head_dim, e.head_dim, end - begin, e.head_dim, dk + begin * k_row,
             k_row);
    CopyRows(sum_dv + begin * e.value_dim, e.value_dim, end - begin, e.value_dim,
             dv + begin * v_row, v_row);
  }

  // What the thread that computes `head` will touch after it.
  void AddRowsAfter(const KernelBuffers& b, int64_t head, RowsAhead& ahead) const {
    const AttentionExtents& e = p_.e;
    int64_t next = head + 1;
    if (next % e.group() == 0) {
      const int64_t kv = head / e.group() + threads_;
      if (kv >= e.batch * e.kv_heads) return;
      next = kv * e.group();
      p_.AddKeys(b.inputs, kv, ahead);
      p_.AddKeys(b.outputs, kv, ahead);
    }
    p_.AddQueries(b.inputs[0], next, ahead);
    p_.AddQueries(b.outputs[0], next, ahead);
    for (const size_t i : {3, 5}) p_.AddResults(b.inputs[i], next, ahead);
    ahead.ShareOut(p_.plan.BackwardFetches());
  }

  float* KeyGrad(const KernelBuffers& b, int64_t kv) const {
    return static_cast<float*>(b.outputs[p_.views.k_operand]) +
           p_.views.k.At(kv / p_.e.kv_heads, kv % p_.e.kv_heads, 0);
  }
  float* ValueGrad(const KernelBuffers& b, int64_t kv) const {
    return static_cast<float*>(b.outputs[p_.views.v_operand]) +
           p_.views.v.At(kv / p_.e.kv_heads, kv % p_.e.kv_heads, 0);
  }

  // But for dq.
  AttentionGrads Grads(const KernelBuffers& b, int64_t head, float* dk, float* dv) const {
    const auto in = [&](size_t i) { return static_cast<const float*>(b.inputs[i]); };
    const int64_t row = head * p_.e.queries;
    const int64_t y = p_.views.y.At(head / p_.e.heads, head % p_.e.heads, 0);
    const bool has_dlse =
        kAttentionDLogSumExp < b.inputs.size() && b.inputs[kAttentionDLogSumExp] != nullptr;
    return {.y = in(3) + y,
            .logsumexp = in(4) + row,
            .dy = in(5) + y,
            .dlogsumexp = has_dlse ? in(kAttentionDLogSumExp) + row : nullptr,
            .dq = nullptr,
            .dq_row = 0,
            .dk = dk,
            .dv = dv};
  }

  void AddPartials(const KernelBuffers& b) const {
    const AttentionExtents& e = p_.e;
    const int64_t rows = e.batch * e.heads * e.queries;
    ParallelFor(threads_, rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t head = r / e.queries;
        float* dq = static_cast<float*>(b.outputs[0]) +
                    p_.views.q.At(head / e.heads, head % e.heads, r % e.queries);
        std::copy_n(Partial(b, 0) + r * e.head_dim, e.head_dim, dq);
        for (int64_t chunk = 1; chunk < chunks_.count; ++chunk) {
          const float* from = Partial(b, chunk) + r * e.head_dim;
          for (int64_t c = 0; c < e.head_dim; ++c) dq[c] += from[c];
        }
      }
    });
  }

  const Problem p_;
  const KeyChunks chunks_;
  const int threads_;
};

bool IsGradient(const OpDef& op) { return op.name == "attention_grad"; }

// Everything is f32 but the mask, which may be bool.
const char* Refuse(const CandidateQuery& q) {
  const size_t mask = IsGradient(q.op) ? kAttentionGradMask : kAttentionMask;
  OpCall plain = q.call;
  if (plain.has_input(mask) && plain.inputs[mask].dtype == DType::kBool)
    plain.inputs[mask].dtype = DType::kF32;
  return AllOf(plain, DType::kF32) ? nullptr : refusal::kDType;
}

int64_t WorkspaceBytes(const CandidateQuery& q) {
  return 4 * (IsGradient(q.op) ? AttentionGradKernel::WorkspaceFloats(q.call, q.threads())
                               : AttentionKernel::WorkspaceFloats(q.call, q.threads()));
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  return IsGradient(q.op) ? MakeKernel<AttentionGradKernel>(q, choice)
                          : MakeKernel<AttentionKernel>(q, choice);
}

}  // namespace

KernelDef AttentionKernelDef() {
  return {.name = "cpu.{op}",
          .ops = {"attention", "attention_grad"},
          .dtypes = {DType::kF32},
          .refuse = Refuse,
          .efficiency = 0.7,
          .workspace_bytes = WorkspaceBytes,
          .make = Make};
}

}  // namespace ridge::cpu

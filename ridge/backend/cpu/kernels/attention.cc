// attention and its gradient: f32, and bf16 computed in f32.
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
//
// What a head reads of bf16 tensors is widened into the workspace, where its rows are contiguous
// and stay in the second cache; what it writes is rounded once.  So the tensors in memory are half
// as large, and no cast of a whole tensor comes before or after.  bf16 declines where heads do
// not share out evenly among the threads: there casts and the f32 kernel, which cuts heads, are
// faster.
#include <algorithm>
#include <tuple>
#include <utility>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/attention_params.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

// So many that each thread takes whole ones.
bool EnoughTasks(int64_t tasks, int threads) {
  return tasks % threads == 0 || tasks >= 4 * threads;
}

template <typename T>
class AttentionKernel : public HostKernel<AttentionKernel<T>> {
 public:
  AttentionKernel(const OpCall& call, int threads) : p_(call, kAttentionMask), threads_(threads) {}

  static int64_t WorkspaceFloats(const OpCall& call, int threads) {
    return threads * AttentionKernel(call, threads).Scratch();
  }

  Status Run(const KernelBuffers& b) {
    const int64_t blocks = CeilDiv(p_.e.queries, kTileQueries);
    // Heads that a thread takes together: what they read is widened once.
    const int64_t together = kNarrow ? p_.e.group() : 1;
    const int64_t heads = p_.e.batch * p_.e.heads;
    // Whole heads where there are enough of them.  Else blocks in turn, because causal blocks grow
    // with their number.
    const bool whole = EnoughTasks(heads / together, threads_);
    const int64_t unit = whole ? blocks * together : 1;
    ForEachPart(threads_, [&](int part) {
      Task task(p_, static_cast<float*>(b.workspace) + part * Scratch());
      for (int64_t first = part * unit; first < heads * blocks; first += threads_ * unit) {
        task.ahead = PrefetchQueue();
        if (whole && !kNarrow) AddRowsAfter(b, first / blocks, task.ahead);
        for (int64_t k = first; k < first + unit; ++k)
          RunBlock(b, k / blocks, k % blocks * kTileQueries, task);
      }
    });
    return Status();
  }

 private:
  using Params = AttentionParams<T>;
  static constexpr bool kNarrow = Params::kNarrow;

  // What a thread carries from block to block.
  struct Task {
    float *copy, *q_copy, *y_copy, *scratch;
    int64_t kv_head = -1, head = -1;  // whose k and v, and whose q, it has; -1: none
    std::pair<const float*, const float*> kv;
    const float* q = nullptr;
    PrefetchQueue ahead;

    Task(const Params& p, float* memory)
        : copy(memory),
          q_copy(copy + p.CopyFloats()),
          y_copy(q_copy + p.QueryFloats()),
          scratch(y_copy + p.ResultFloats()) {}
  };

  // What the thread that computes `head` will touch after it.
  void AddRowsAfter(const KernelBuffers& b, int64_t head, PrefetchQueue& ahead) const {
    const int64_t next = head + threads_;
    if (next >= p_.e.batch * p_.e.heads) return;
    if (p_.KeyHead(next) != p_.KeyHead(head)) p_.AddKeys(b.inputs, p_.KeyHead(next), ahead);
    p_.AddQueries(b.inputs[0], next, ahead);
    p_.AddResults(b.outputs[0], next, ahead);
    ahead.ShareOut(p_.shape.ForwardFetches());
  }

  int64_t Scratch() const {
    return RoundUpFloats(p_.shape.ForwardScratch()) + p_.CopyFloats() + p_.QueryFloats() +
           p_.ResultFloats();
  }

  void RunBlock(const KernelBuffers& b, int64_t head, int64_t begin, Task& task) const {
    const int64_t end = std::min(begin + kTileQueries, p_.e.queries);
    if (const int64_t kv = p_.KeyHead(head); kv != task.kv_head) {
      task.kv = p_.Keys(b, kv, task.copy);
      task.kv_head = kv;
    }
    if (head != task.head) {
      task.q = p_.Queries(b.inputs[0], head, task.q_copy);
      task.head = head;
    }
    const AttentionHead operands{task.q, task.kv.first, task.kv.second,
                                 p_.MaskOf(b, head, kAttentionMask), &task.ahead};
    auto* logsumexp = static_cast<float*>(b.outputs[1]) + head * p_.e.queries;
    T* y = static_cast<T*>(b.outputs[0]) + p_.ResultAt(head);
    if constexpr (kNarrow) {
      AttentionForward(p_.shape, operands, begin, end, task.y_copy, logsumexp, task.scratch);
      CopyRows(task.y_copy + begin * p_.e.value_dim, p_.e.value_dim, end - begin, p_.e.value_dim,
               y + begin * p_.views.y.row, p_.views.y.row);
    } else {
      AttentionForward(p_.shape, operands, begin, end, y, logsumexp, task.scratch);
    }
  }

  const Params p_;
  const int threads_;
};

// Into how many runs the keys of a head are cut, and how long they are.
struct KeyChunks {
  int64_t count = 1, keys = 0;

  KeyChunks(const AttentionExtents& e, int threads) {
    const int64_t heads = e.batch * e.kv_heads, tiles = CeilDiv(e.keys, kTileKeys);
    const int64_t enough = EnoughTasks(heads, threads) ? 1 : 4 * threads / heads;
    const int64_t tiles_each = (tiles + enough - 1) / std::max<int64_t>(std::min(enough, tiles), 1);
    keys = std::max<int64_t>(tiles_each, 1) * kTileKeys;
    count = CeilDiv(e.keys, keys);
  }
};

template <typename T>
class AttentionGradKernel : public HostKernel<AttentionGradKernel<T>> {
 public:
  AttentionGradKernel(const OpCall& call, int threads)
      : p_(call, kAttentionGradMask), chunks_(p_.e, threads), threads_(threads) {}

  static int64_t WorkspaceFloats(const OpCall& call, int threads) {
    const AttentionGradKernel kernel(call, threads);
    return threads * kernel.Scratch() + kernel.PartialFloats();
  }

  Status Run(const KernelBuffers& b) {
    const int64_t tasks = p_.e.batch * p_.e.kv_heads * chunks_.count;
    ForEachPart(threads_, [&](int part) {
      const Copies copies(p_, static_cast<float*>(b.workspace) + part * Scratch());
      for (int64_t task = part; task < tasks; task += threads_)
        RunChunk(b, task / chunks_.count, task % chunks_.count, copies);
    });
    if (chunks_.count > 1) AddPartials(b);
    return Status();
  }

 private:
  using Params = AttentionParams<T>;
  static constexpr bool kNarrow = Params::kNarrow;

  // One thread's memory: copies of a head, those of 16-bit operands, and the tiles.
  struct Copies {
    float *kv, *dkv, *q, *dq, *y, *dy, *tiles;

    Copies(const Params& p, float* memory)
        : kv(memory),
          dkv(kv + p.CopyFloats()),
          q(dkv + p.CopyFloats()),
          dq(q + p.QueryFloats()),
          y(dq + p.QueryFloats()),
          dy(y + p.ResultFloats()),
          tiles(dy + p.ResultFloats()) {}
  };
  int64_t Scratch() const {
    return RoundUpFloats(p_.shape.BackwardScratch()) +
           2 * (p_.CopyFloats() + p_.QueryFloats() + p_.ResultFloats());
  }
  int64_t AllQueryFloats() const { return p_.e.batch * p_.e.heads * p_.e.queries * p_.e.head_dim; }
  int64_t PartialFloats() const {
    return chunks_.count > 1 ? chunks_.count * RoundUpFloats(AllQueryFloats()) : 0;
  }
  // [B,H,T,D] of what a chunk of keys gives.
  float* Partial(const KernelBuffers& b, int64_t chunk) const {
    return static_cast<float*>(b.workspace) + threads_ * Scratch() +
           chunk * RoundUpFloats(AllQueryFloats());
  }
  // Where a head's dq goes, and from one row to the next.
  std::pair<float*, int64_t> QueryGrads(const KernelBuffers& b, int64_t head, int64_t chunk,
                                        const Copies& c) const {
    const AttentionExtents& e = p_.e;
    if constexpr (kNarrow) return {c.dq, e.head_dim};
    if (chunks_.count > 1) return {Partial(b, chunk) + head * e.queries * e.head_dim, e.head_dim};
    return {static_cast<float*>(b.outputs[0]) + p_.QueryAt(head), p_.views.q.row};
  }

  // dk and dv of these keys of head `kv`, and what they give to dq of the heads that read it.
  void RunChunk(const KernelBuffers& b, int64_t kv, int64_t chunk, const Copies& c) const {
    const AttentionExtents& e = p_.e;
    const int64_t begin = chunk * chunks_.keys, end = std::min(begin + chunks_.keys, e.keys);
    const auto keys = p_.Keys(b, kv, c.kv);
    T* dk = static_cast<T*>(b.outputs[p_.views.k_operand]) + p_.KeyAt(kv);  // where they end up
    T* dv = static_cast<T*>(b.outputs[p_.views.v_operand]) + p_.ValueAt(kv);
    float *sum_dk = c.dkv, *sum_dv = sum_dk + e.keys * e.head_dim;
    if constexpr (!kNarrow) {
      if (!p_.copies()) {
        sum_dk = dk;
        sum_dv = dv;
      }
    }
    std::fill(sum_dk + begin * e.head_dim, sum_dk + end * e.head_dim, 0.0F);
    std::fill(sum_dv + begin * e.value_dim, sum_dv + end * e.value_dim, 0.0F);
    for (int64_t head = kv * e.group(); head < (kv + 1) * e.group(); ++head)
      RunHead(b, head, chunk, keys, sum_dk, sum_dv, c);
    if (!p_.copies()) return;
    const int64_t k_row = p_.views.k.row, v_row = p_.views.v.row;
    CopyRows(sum_dk + begin * e.head_dim, e.head_dim, end - begin, e.head_dim, dk + begin * k_row,
             k_row);
    CopyRows(sum_dv + begin * e.value_dim, e.value_dim, end - begin, e.value_dim,
             dv + begin * v_row, v_row);
  }

  // dq of a head, and what it gives to dk and dv, for the keys of a chunk.
  void RunHead(const KernelBuffers& b, int64_t head, int64_t chunk,
               std::pair<const float*, const float*> keys, float* dk, float* dv,
               const Copies& c) const {
    const int64_t begin = chunk * chunks_.keys, end = std::min(begin + chunks_.keys, p_.e.keys);
    PrefetchQueue ahead;
    if (chunks_.count == 1 && !kNarrow) AddRowsAfter(b, head, ahead);
    const AttentionHead operands{p_.Queries(b.inputs[0], head, c.q), keys.first, keys.second,
                                 p_.MaskOf(b, head, kAttentionGradMask), &ahead};
    AttentionGrads grads = Grads(b, head, c);
    grads.dk = dk;
    grads.dv = dv;
    std::tie(grads.dq, grads.dq_row) = QueryGrads(b, head, chunk, c);
    AttentionBackward(p_.shape, operands, grads, begin, end, c.tiles);
    if constexpr (kNarrow) {
      CopyRows(c.dq, p_.e.head_dim, p_.e.queries, p_.e.head_dim,
               static_cast<T*>(b.outputs[0]) + p_.QueryAt(head), p_.views.q.row);
    }
  }

  // What the thread that computes `head` will touch after it.
  void AddRowsAfter(const KernelBuffers& b, int64_t head, PrefetchQueue& ahead) const {
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
    ahead.ShareOut(p_.shape.BackwardFetches());
  }

  // But for what is written.
  AttentionGrads Grads(const KernelBuffers& b, int64_t head, const Copies& c) const {
    const auto rows = [&](size_t i) -> const float* {
      const bool there = i < b.inputs.size() && b.inputs[i] != nullptr;
      return there ? static_cast<const float*>(b.inputs[i]) + head * p_.e.queries : nullptr;
    };
    return {.y = p_.Results(b.inputs[3], head, c.y),
            .logsumexp = rows(4),
            .dy = p_.Results(b.inputs[5], head, c.dy),
            .dlogsumexp = rows(kAttentionDLogSumExp),
            .dq = nullptr,
            .dq_row = 0,
            .dk = nullptr,
            .dv = nullptr};
  }

  void AddPartials(const KernelBuffers& b) const {
    const AttentionExtents& e = p_.e;
    const int64_t rows = e.batch * e.heads * e.queries;
    ParallelFor(threads_, rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t head = r / e.queries;
        float* dq =
            static_cast<float*>(b.outputs[0]) + p_.QueryAt(head) + r % e.queries * p_.views.q.row;
        std::copy_n(Partial(b, 0) + r * e.head_dim, e.head_dim, dq);
        for (int64_t chunk = 1; chunk < chunks_.count; ++chunk) {
          const float* from = Partial(b, chunk) + r * e.head_dim;
          for (int64_t c = 0; c < e.head_dim; ++c) dq[c] += from[c];
        }
      }
    });
  }

  const Params p_;
  const KeyChunks chunks_;
  const int threads_;
};

bool IsGradient(const OpDef& op) { return op.name == "attention_grad"; }

size_t MaskOf(const OpDef& op) { return IsGradient(op) ? kAttentionGradMask : kAttentionMask; }

// Everything is f32 but the mask, which may be bool.
const char* RefuseF32(const CandidateQuery& q) {
  const size_t mask = MaskOf(q.op);
  OpCall plain = q.call;
  if (plain.has_input(mask) && plain.inputs[mask].dtype == DType::kBool)
    plain.inputs[mask].dtype = DType::kF32;
  return AllOf(plain, DType::kF32) ? nullptr : refusal::kDType;
}

const char* RefuseBF16(const CandidateQuery& q) {
  const size_t mask = MaskOf(q.op);
  const DType type = q.call.has_input(mask) ? q.call.inputs[mask].dtype : DType::kF32;
  if (type != DType::kBool && type != DType::kF32) return refusal::kDType;
  const AttentionExtents e = ExtentsOf(q.call);
  return EnoughTasks(e.batch * e.kv_heads, q.threads()) ? nullptr : refusal::kNoGain;
}

template <typename T>
int64_t WorkspaceBytes(const CandidateQuery& q) {
  return 4 * (IsGradient(q.op) ? AttentionGradKernel<T>::WorkspaceFloats(q.call, q.threads())
                               : AttentionKernel<T>::WorkspaceFloats(q.call, q.threads()));
}

template <typename T>
Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  return IsGradient(q.op) ? MakeKernel<AttentionGradKernel<T>>(q, choice)
                          : MakeKernel<AttentionKernel<T>>(q, choice);
}

}  // namespace

KernelDef AttentionKernelDef() {
  return {.name = "cpu.{op}",
          .ops = {"attention", "attention_grad"},
          .dtypes = {DType::kF32},
          .refuse = RefuseF32,
          .efficiency = 0.7,
          .workspace_bytes = WorkspaceBytes<float>,
          .make = Make<float>};
}

KernelDef AttentionBF16KernelDef() {
  return {.name = "cpu.{op}_bf16",
          .ops = {"attention", "attention_grad"},
          .dtypes = {DType::kBF16},
          .refuse = RefuseBF16,
          .efficiency = 0.7,
          .workspace_bytes = WorkspaceBytes<uint16_t>,
          .make = Make<uint16_t>};
}

}  // namespace ridge::cpu

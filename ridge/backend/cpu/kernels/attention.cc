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
#include "ridge/graph/ops/shared/attention.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "ridge/backend/cpu/kernels/attention_tiles.h"
#include "ridge/backend/cpu/kernels/kernels.h"
#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

int64_t RoundUp(int64_t floats) { return (floats + 15) / 16 * 16; }

// A call as its kernels see it.
struct Problem {
  AttentionExtents e;
  AttentionViews views;
  AttentionPlan plan;
  std::array<int64_t, 4> mask{};  // strides

  Problem(const OpCall& call, size_t mask_input) : e(ExtentsOf(call)), views(ViewsOf(call)) {
    plan = {.queries = e.queries,
            .keys = e.keys,
            .head_dim = e.head_dim,
            .value_dim = e.value_dim,
            .scale = static_cast<float>(call.number("scale")),
            .softcap = static_cast<float>(call.number("softcap")),
            .causal = call.integer("causal") != 0,
            .causal_offset = call.integer("causal_offset"),
            .q_row = views.q.row,
            .k_row = e.head_dim,  // of copies or of operands that lie so
            .v_row = e.value_dim,
            .y_row = views.y.row};
    if (!call.has_input(mask_input)) return;
    const TensorType& type = call.inputs[mask_input];
    mask = MaskStrides(e, type.dims);
    plan.mask_is_bool = type.dtype == DType::kBool;
    plan.mask_row = mask[2];
    plan.mask_col = mask[3];
  }

  bool copies() const { return views.k.row != e.head_dim || views.v.row != e.value_dim; }
  // Scratch for copies of k and v, or of dk and dv, of one head.
  int64_t CopyFloats() const { return copies() ? RoundUp(e.keys * (e.head_dim + e.value_dim)) : 0; }

  // k and v of a head of theirs, counted through the batch: in place, or copied into `to`.
  std::pair<const float*, const float*> Keys(const KernelBuffers& b, int64_t kv, float* to) const {
    const auto in = [&](size_t i) { return static_cast<const float*>(b.inputs[i]); };
    const int64_t sample = kv / e.kv_heads, own = kv % e.kv_heads;
    const float* k = in(views.k_operand) + views.k.At(sample, own, 0);
    const float* v = in(views.v_operand) + views.v.At(sample, own, 0);
    if (!copies()) return {k, v};
    float* v_to = to + e.keys * e.head_dim;
    for (int64_t j = 0; j < e.keys; ++j)
      std::copy_n(k + j * views.k.row, e.head_dim, to + j * e.head_dim);
    for (int64_t j = 0; j < e.keys; ++j)
      std::copy_n(v + j * views.v.row, e.value_dim, v_to + j * e.value_dim);
    return {to, v_to};
  }

  // Which head of k and v head `head` of q reads, both counted through the batch.
  int64_t KeyHead(int64_t head) const {
    return head / e.heads * e.kv_heads + head % e.heads / e.group();
  }

  // Of q's heads counted through the batch; k and v from Keys().
  AttentionHead Head(const KernelBuffers& b, int64_t head, std::pair<const float*, const float*> kv,
                     size_t mask_input) const {
    const auto* q = static_cast<const float*>(b.inputs[0]);
    AttentionHead h{q + views.q.At(head / e.heads, head % e.heads, 0), kv.first, kv.second};
    if (mask_input >= b.inputs.size() || b.inputs[mask_input] == nullptr) return h;
    const int64_t at = head / e.heads * mask[0] + head % e.heads * mask[1];
    h.mask = static_cast<const char*>(b.inputs[mask_input]) + at * (plan.mask_is_bool ? 1 : 4);
    return h;
  }
};

constexpr size_t kMask = 3, kGradMask = 6, kDLogSumExp = 7;

class AttentionKernel : public Kernel {
 public:
  AttentionKernel(const OpCall& call, int threads) : p_(call, kMask), threads_(threads) {}

  static int64_t WorkspaceFloats(const OpCall& call, int threads) {
    return threads * AttentionKernel(call, threads).Scratch();
  }

  Status Run(const KernelBuffers& b) override {
    const int64_t blocks = (p_.e.queries + kTileQueries - 1) / kTileQueries;
    const int64_t heads = p_.e.batch * p_.e.heads;
    // Whole heads where there are enough of them.  Else blocks in turn, because causal blocks grow
    // with their number.
    const bool whole = heads % threads_ == 0 || heads >= 4 * threads_;
    const int64_t unit = whole ? blocks : 1;
    ForEachPart(threads_, [&](int part) {
      float* copy = static_cast<float*>(b.workspace) + part * Scratch();
      Task task{copy + p_.CopyFloats(), copy, -1, {}};
      for (int64_t first = part * unit; first < heads * blocks; first += threads_ * unit) {
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
  };

  int64_t Scratch() const { return RoundUp(p_.plan.ForwardScratch()) + p_.CopyFloats(); }

  void RunBlock(const KernelBuffers& b, int64_t head, int64_t begin, Task& task) const {
    const int64_t end = std::min(begin + kTileQueries, p_.e.queries);
    if (const int64_t kv = p_.KeyHead(head); kv != task.kv_head) {
      task.kv = p_.Keys(b, kv, task.copy);
      task.kv_head = kv;
    }
    auto* y =
        static_cast<float*>(b.outputs[0]) + p_.views.y.At(head / p_.e.heads, head % p_.e.heads, 0);
    auto* logsumexp = static_cast<float*>(b.outputs[1]) + head * p_.e.queries;
    AttentionForward(p_.plan, p_.Head(b, head, task.kv, kMask), begin, end, y, logsumexp,
                     task.scratch);
  }

  const Problem p_;
  const int threads_;
};

// Into how many runs the keys of a head are cut, and how long they are.
struct KeyChunks {
  int64_t count = 1, keys = 0;

  KeyChunks(const AttentionExtents& e, int threads) {
    const int64_t heads = e.batch * e.kv_heads, tiles = (e.keys + kTileKeys - 1) / kTileKeys;
    const int64_t enough = heads % threads == 0 || heads >= 4 * threads ? 1 : 4 * threads / heads;
    const int64_t tiles_each = (tiles + enough - 1) / std::max<int64_t>(std::min(enough, tiles), 1);
    keys = std::max<int64_t>(tiles_each, 1) * kTileKeys;
    count = (e.keys + keys - 1) / keys;
  }
};

class AttentionGradKernel : public Kernel {
 public:
  AttentionGradKernel(const OpCall& call, int threads)
      : p_(call, kGradMask), chunks_(p_.e, threads), threads_(threads) {}

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
  int64_t Scratch() const { return RoundUp(p_.plan.BackwardScratch()) + 2 * p_.CopyFloats(); }
  int64_t QueryFloats() const { return p_.e.batch * p_.e.heads * p_.e.queries * p_.e.head_dim; }
  int64_t PartialFloats() const {
    return chunks_.count > 1 ? chunks_.count * RoundUp(QueryFloats()) : 0;
  }
  // [B,H,T,D] of what a chunk of keys gives.
  float* Partial(const KernelBuffers& b, int64_t chunk) const {
    return static_cast<float*>(b.workspace) + threads_ * Scratch() + chunk * RoundUp(QueryFloats());
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
    float* copy = scratch + RoundUp(p_.plan.BackwardScratch());
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
      AttentionBackward(p_.plan, p_.Head(b, head, keys, kGradMask), grads, begin, end, scratch);
    }
    for (int64_t j = begin; p_.copies() && j < end; ++j) {
      std::copy_n(sum_dk + j * e.head_dim, e.head_dim, dk + j * p_.views.k.row);
      std::copy_n(sum_dv + j * e.value_dim, e.value_dim, dv + j * p_.views.v.row);
    }
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
    const bool has_dlse = kDLogSumExp < b.inputs.size() && b.inputs[kDLogSumExp] != nullptr;
    return {.y = in(3) + y,
            .logsumexp = in(4) + row,
            .dy = in(5) + y,
            .dlogsumexp = has_dlse ? in(kDLogSumExp) + row : nullptr,
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

// Everything f32 but the mask, which may be bool.
bool Supported(const OpCall& call, size_t mask) {
  OpCall plain = call;
  if (call.has_input(mask) && call.inputs[mask].dtype == DType::kBool)
    plain.inputs[mask].dtype = DType::kF32;
  return AllOf(plain, DType::kF32);
}

}  // namespace

const char* OfferAttention(const Question& q, std::vector<KernelChoice>& choices) {
  const bool grad = q.op.name == "attention_grad";
  if (AnyEmpty(q.call)) return refusal::kEmpty;
  if (!Supported(q.call, grad ? kGradMask : kMask)) return refusal::kDType;
  const int threads = ThreadsFor(q.cpu, q.op, q.call);
  KernelChoice choice = MakeChoice(q, "cpu." + q.op.name, 0.7);
  choice.workspace_bytes = 4 * (grad ? AttentionGradKernel::WorkspaceFloats(q.call, threads)
                                     : AttentionKernel::WorkspaceFloats(q.call, threads));
  SetKey(q, choice);
  choices.push_back(std::move(choice));
  return nullptr;
}

Result<std::unique_ptr<Kernel>> CreateAttention(const CpuContext& cpu, const OpDef& op,
                                                const OpCall& call, const KernelChoice&) {
  return std::unique_ptr<Kernel>(
      std::make_unique<AttentionKernel>(call, ThreadsFor(cpu, op, call)));
}

Result<std::unique_ptr<Kernel>> CreateAttentionGrad(const CpuContext& cpu, const OpDef& op,
                                                    const OpCall& call, const KernelChoice&) {
  return std::unique_ptr<Kernel>(
      std::make_unique<AttentionGradKernel>(call, ThreadsFor(cpu, op, call)));
}

}  // namespace ridge::cpu

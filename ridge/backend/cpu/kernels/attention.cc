// attention and its gradient, f32.
//
// Forward: a task is a block of queries of one head; tasks share nothing.
// Backward: a task is one head of k and v with all heads of q that read it, so no two tasks add to
// one number of dk or dv.  Where that makes too few tasks the keys are cut into chunks, each chunk
// writes its own dq, and these are added in order.  The order of all sums depends on the number of
// threads only.
#include "ridge/graph/ops/shared/attention.h"

#include <algorithm>

#include "ridge/backend/cpu/kernels/attention_tiles.h"
#include "ridge/backend/cpu/kernels/kernels.h"
#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

int64_t RoundUp(int64_t floats) { return (floats + 15) / 16 * 16; }

// A call as its kernels see it.
struct Problem {
  AttentionExtents e;
  AttentionPlan plan;
  std::array<int64_t, 4> mask{};  // strides

  Problem(const OpCall& call, size_t mask_input) : e(ExtentsOf(call)) {
    plan = {.queries = e.queries,
            .keys = e.keys,
            .head_dim = e.head_dim,
            .value_dim = e.value_dim,
            .scale = static_cast<float>(call.number("scale")),
            .softcap = static_cast<float>(call.number("softcap")),
            .causal = call.integer("causal") != 0,
            .causal_offset = call.integer("causal_offset")};
    if (!call.has_input(mask_input)) return;
    const TensorType& type = call.inputs[mask_input];
    mask = MaskStrides(e, type.dims);
    plan.mask_is_bool = type.dtype == DType::kBool;
    plan.mask_row = mask[2];
    plan.mask_col = mask[3];
  }

  // Of q's heads counted through the batch.
  AttentionHead Head(const KernelBuffers& b, int64_t head, size_t mask_input) const {
    const auto in = [&](size_t i) { return static_cast<const float*>(b.inputs[i]); };
    const int64_t kv = head / e.heads * e.kv_heads + head % e.heads / e.group();
    AttentionHead h{in(0) + head * e.queries * e.head_dim, in(1) + kv * e.keys * e.head_dim,
                    in(2) + kv * e.keys * e.value_dim};
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
    return threads * RoundUp(Problem(call, kMask).plan.ForwardScratch());
  }

  Status Run(const KernelBuffers& b) override {
    const int64_t blocks = (p_.e.queries + kTileQueries - 1) / kTileQueries;
    const int64_t tasks = p_.e.batch * p_.e.heads * blocks;
    ForEachPart(threads_, [&](int part) {
      float* scratch = static_cast<float*>(b.workspace) + part * RoundUp(p_.plan.ForwardScratch());
      // In turn, because causal blocks grow with their number.
      for (int64_t task = part; task < tasks; task += threads_)
        RunBlock(b, task / blocks, task % blocks * kTileQueries, scratch);
    });
    return Status();
  }

 private:
  void RunBlock(const KernelBuffers& b, int64_t head, int64_t begin, float* scratch) const {
    const int64_t end = std::min(begin + kTileQueries, p_.e.queries);
    auto* y = static_cast<float*>(b.outputs[0]) + head * p_.e.queries * p_.e.value_dim;
    auto* logsumexp = static_cast<float*>(b.outputs[1]) + head * p_.e.queries;
    AttentionForward(p_.plan, p_.Head(b, head, kMask), begin, end, y, logsumexp, scratch);
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
  int64_t Scratch() const { return RoundUp(p_.plan.BackwardScratch()); }
  int64_t QueryFloats() const { return p_.e.batch * p_.e.heads * p_.e.queries * p_.e.head_dim; }
  int64_t PartialFloats() const {
    return chunks_.count > 1 ? chunks_.count * RoundUp(QueryFloats()) : 0;
  }
  float* Partial(const KernelBuffers& b, int64_t chunk) const {
    if (chunks_.count == 1) return static_cast<float*>(b.outputs[0]);
    return static_cast<float*>(b.workspace) + threads_ * Scratch() + chunk * RoundUp(QueryFloats());
  }

  // dk and dv of these keys of head `kv`, and what they give to dq of the heads that read it.
  void RunChunk(const KernelBuffers& b, int64_t kv, int64_t chunk, float* scratch) const {
    const AttentionExtents& e = p_.e;
    const int64_t begin = chunk * chunks_.keys, end = std::min(begin + chunks_.keys, e.keys);
    auto* dk = static_cast<float*>(b.outputs[1]) + kv * e.keys * e.head_dim;
    auto* dv = static_cast<float*>(b.outputs[2]) + kv * e.keys * e.value_dim;
    std::fill(dk + begin * e.head_dim, dk + end * e.head_dim, 0.0F);
    std::fill(dv + begin * e.value_dim, dv + end * e.value_dim, 0.0F);
    for (int64_t g = 0; g < e.group(); ++g) {
      const int64_t head = kv * e.group() + g;
      const AttentionGrads grads = Grads(b, head, Partial(b, chunk), dk, dv);
      AttentionBackward(p_.plan, p_.Head(b, head, kGradMask), grads, begin, end, scratch);
    }
  }

  AttentionGrads Grads(const KernelBuffers& b, int64_t head, float* dq, float* dk,
                       float* dv) const {
    const auto in = [&](size_t i) { return static_cast<const float*>(b.inputs[i]); };
    const int64_t row = head * p_.e.queries;
    const bool has_dlse = kDLogSumExp < b.inputs.size() && b.inputs[kDLogSumExp] != nullptr;
    return {.y = in(3) + row * p_.e.value_dim,
            .logsumexp = in(4) + row,
            .dy = in(5) + row * p_.e.value_dim,
            .dlogsumexp = has_dlse ? in(kDLogSumExp) + row : nullptr,
            .dq = dq + row * p_.e.head_dim,
            .dk = dk,
            .dv = dv};
  }

  void AddPartials(const KernelBuffers& b) const {
    auto* dq = static_cast<float*>(b.outputs[0]);
    ParallelFor(threads_, QueryFloats(), 16, [&](int64_t begin, int64_t end) {
      std::copy(Partial(b, 0) + begin, Partial(b, 0) + end, dq + begin);
      for (int64_t chunk = 1; chunk < chunks_.count; ++chunk) {
        const float* from = Partial(b, chunk);
        for (int64_t i = begin; i < end; ++i) dq[i] += from[i];
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

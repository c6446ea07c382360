// attention and its gradient on bf16 tensors, computed in f32.
//
// A task is a head of k and v with the heads of q that read it.  What a head reads is widened into
// the workspace, where its rows lie side by side and stay in the second cache; what it writes is
// rounded once.  So the tensors in memory are half as large, and no cast of a whole tensor stands
// before or behind.  Declines where heads do not share out evenly among the threads: there
// attention.cc cuts them.
#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/attention_problem.h"
#include "ridge/backend/cpu/kernels/tile_program.h"
#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

// Rows of a head inside a tensor.
template <typename T>
struct Rows {
  T* at;
  int64_t stride, count, width;
};

void Widen(const Rows<const uint16_t>& from, float* to) {
  for (int64_t r = 0; r < from.count; ++r)
    WidenRow(from.at + r * from.stride, from.width, to + r * from.width);
}
void Round(const float* from, const Rows<uint16_t>& to) {
  for (int64_t r = 0; r < to.count; ++r)
    RoundRow(from + r * to.width, to.width, to.at + r * to.stride);
}

// One thread's copies.
struct Copies {
  float *q, *k, *v, *y;
  float *dy, *dq, *dk, *dv;  // of the gradient
  float* tiles;
};

class AttentionBF16Kernel : public Kernel {
 public:
  AttentionBF16Kernel(const OpCall& call, bool gradient, int threads)
      : p_(call, gradient ? kAttentionGradMask : kAttentionMask),
        plan_(p_.plan),
        gradient_(gradient),
        threads_(threads) {
    plan_.q_row = p_.e.head_dim;
    plan_.y_row = p_.e.value_dim;
  }

  int64_t WorkspaceBytes() const { return threads_ * ScratchFloats() * 4; }

  Status Run(const KernelBuffers& b) override {
    const int64_t tasks = p_.e.batch * p_.e.kv_heads;
    ForEachPart(threads_, [&](int part) {
      const Copies c = Split(static_cast<float*>(b.workspace) + part * ScratchFloats());
      for (int64_t kv = part; kv < tasks; kv += threads_) {
        Widen(KeyRows<const uint16_t>(b.inputs, kv), c.k);
        Widen(ValueRows<const uint16_t>(b.inputs, kv), c.v);
        gradient_ ? Backward(b, kv, c) : Forward(b, kv, c);
      }
    });
    return Status();
  }

 private:
  int64_t Keys() const { return RoundUpFloats(p_.e.keys * p_.e.head_dim); }
  int64_t Values() const { return RoundUpFloats(p_.e.keys * p_.e.value_dim); }
  int64_t Queries() const { return RoundUpFloats(p_.e.queries * p_.e.head_dim); }
  int64_t Results() const { return RoundUpFloats(p_.e.queries * p_.e.value_dim); }
  int64_t ScratchFloats() const {
    const int64_t once = Queries() + Keys() + Values() + Results();
    return gradient_ ? 2 * once + RoundUpFloats(plan_.BackwardScratch())
                     : once + RoundUpFloats(plan_.ForwardScratch());
  }

  Copies Split(float* at) const {
    const auto take = [&at](int64_t floats) { return std::exchange(at, at + floats); };
    Copies c{};
    c.q = take(Queries());
    c.k = take(Keys());
    c.v = take(Values());
    c.y = take(Results());
    if (gradient_) {
      c.dq = take(Queries());
      c.dk = take(Keys());
      c.dv = take(Values());
      c.dy = take(Results());
    }
    c.tiles = at;
    return c;
  }

  // A head's rows in tensor `i` of some buffers.
  template <typename T, typename Buffers>
  static T* At(const Buffers& buffers, size_t i) {
    return static_cast<T*>(buffers[i]);
  }
  template <typename T, typename Buffers>
  Rows<T> KeyRows(const Buffers& buffers, int64_t kv) const {
    const int64_t at = p_.views.k.At(kv / p_.e.kv_heads, kv % p_.e.kv_heads, 0);
    return {At<T>(buffers, p_.views.k_operand) + at, p_.views.k.row, p_.e.keys, p_.e.head_dim};
  }
  template <typename T, typename Buffers>
  Rows<T> ValueRows(const Buffers& buffers, int64_t kv) const {
    const int64_t at = p_.views.v.At(kv / p_.e.kv_heads, kv % p_.e.kv_heads, 0);
    return {At<T>(buffers, p_.views.v_operand) + at, p_.views.v.row, p_.e.keys, p_.e.value_dim};
  }
  template <typename T, typename Buffers>
  Rows<T> QueryRows(const Buffers& buffers, int64_t head) const {
    const int64_t at = p_.views.q.At(head / p_.e.heads, head % p_.e.heads, 0);
    return {At<T>(buffers, 0) + at, p_.views.q.row, p_.e.queries, p_.e.head_dim};
  }
  template <typename T, typename Buffers>
  Rows<T> ResultRows(const Buffers& buffers, size_t i, int64_t head) const {
    const int64_t at = p_.views.y.At(head / p_.e.heads, head % p_.e.heads, 0);
    return {At<T>(buffers, i) + at, p_.views.y.row, p_.e.queries, p_.e.value_dim};
  }

  void Forward(const KernelBuffers& b, int64_t kv, const Copies& c) const {
    for (int64_t head = kv * p_.e.group(); head < (kv + 1) * p_.e.group(); ++head) {
      Widen(QueryRows<const uint16_t>(b.inputs, head), c.q);
      const AttentionHead h{c.q, c.k, c.v, p_.MaskOf(b, head, kAttentionMask)};
      float* logsumexp = static_cast<float*>(b.outputs[1]) + head * p_.e.queries;
      for (int64_t begin = 0; begin < p_.e.queries; begin += kTileQueries) {
        AttentionForward(plan_, h, begin, std::min(begin + kTileQueries, p_.e.queries), c.y,
                         logsumexp, c.tiles);
      }
      Round(c.y, ResultRows<uint16_t>(b.outputs, 0, head));
    }
  }

  void Backward(const KernelBuffers& b, int64_t kv, const Copies& c) const {
    constexpr size_t kY = 3, kLogSumExp = 4, kDy = 5;
    std::fill_n(c.dk, Keys(), 0.0F);
    std::fill_n(c.dv, Values(), 0.0F);
    for (int64_t head = kv * p_.e.group(); head < (kv + 1) * p_.e.group(); ++head) {
      Widen(QueryRows<const uint16_t>(b.inputs, head), c.q);
      Widen(ResultRows<const uint16_t>(b.inputs, kY, head), c.y);
      Widen(ResultRows<const uint16_t>(b.inputs, kDy, head), c.dy);
      const AttentionHead h{c.q, c.k, c.v, p_.MaskOf(b, head, kAttentionGradMask)};
      const auto rows = [&](size_t i) -> const float* {
        const bool there = i < b.inputs.size() && b.inputs[i] != nullptr;
        return there ? static_cast<const float*>(b.inputs[i]) + head * p_.e.queries : nullptr;
      };
      const AttentionGrads grads{.y = c.y,
                                 .logsumexp = rows(kLogSumExp),
                                 .dy = c.dy,
                                 .dlogsumexp = rows(kAttentionDLogSumExp),
                                 .dq = c.dq,
                                 .dq_row = p_.e.head_dim,
                                 .dk = c.dk,
                                 .dv = c.dv};
      AttentionBackward(plan_, h, grads, 0, p_.e.keys, c.tiles);
      Round(c.dq, QueryRows<uint16_t>(b.outputs, head));
    }
    Round(c.dk, KeyRows<uint16_t>(b.outputs, kv));
    Round(c.dv, ValueRows<uint16_t>(b.outputs, kv));
  }

  const AttentionProblem p_;
  AttentionPlan plan_;  // of copies, whose rows lie side by side
  const bool gradient_;
  const int threads_;
};

bool IsGradient(const OpDef& op) { return op.name == "attention_grad"; }

const char* Refuse(const CandidateQuery& q) {
  const size_t mask = IsGradient(q.op) ? kAttentionGradMask : kAttentionMask;
  const DType type = q.call.has_input(mask) ? q.call.inputs[mask].dtype : DType::kF32;
  if (type != DType::kBool && type != DType::kF32) return refusal::kDType;
  const AttentionExtents e = ExtentsOf(q.call);
  const int64_t tasks = e.batch * e.kv_heads;
  return tasks % q.threads() != 0 && tasks < 4 * q.threads() ? refusal::kNoGain : nullptr;
}

AttentionBF16Kernel KernelOf(const CandidateQuery& q) {
  return AttentionBF16Kernel(q.call, IsGradient(q.op), q.threads());
}

int64_t Workspace(const CandidateQuery& q) { return KernelOf(q).WorkspaceBytes(); }

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice&) {
  return std::unique_ptr<Kernel>(std::make_unique<AttentionBF16Kernel>(KernelOf(q)));
}

}  // namespace

KernelDef AttentionBF16KernelDef() {
  return {.name = "cpu.{op}_bf16",
          .ops = {"attention", "attention_grad"},
          .dtypes = {DType::kBF16},
          .refuse = Refuse,
          .efficiency = 0.7,
          .workspace_bytes = Workspace,
          .make = Make};
}

}  // namespace ridge::cpu

// A call of attention or its gradient, as the kernels see it.
#pragma once
#include <algorithm>
#include <array>
#include <utility>

#include "ridge/backend/backend.h"
#include "ridge/backend/cpu/kernels/attention_tiles.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/attention.h"

namespace ridge::cpu {

// Inputs.
inline constexpr size_t kAttentionMask = 3, kAttentionGradMask = 6, kAttentionDLogSumExp = 7;

// A call as its kernels see it.
struct AttentionProblem {
  AttentionExtents e;
  AttentionViews views;
  AttentionPlan plan;
  std::array<int64_t, 4> mask{};  // strides

  AttentionProblem(const OpCall& call, size_t mask_input)
      : e(ExtentsOf(call)), views(ViewsOf(call)) {
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
  int64_t CopyFloats() const {
    return copies() ? RoundUpFloats(e.keys * (e.head_dim + e.value_dim)) : 0;
  }

  // k and v of a head of theirs, counted through the batch: in place, or copied into `to`.
  std::pair<const float*, const float*> Keys(const KernelBuffers& b, int64_t kv, float* to) const {
    const auto in = [&](size_t i) { return static_cast<const float*>(b.inputs[i]); };
    const int64_t sample = kv / e.kv_heads, own = kv % e.kv_heads;
    const float* k = in(views.k_operand) + views.k.At(sample, own, 0);
    const float* v = in(views.v_operand) + views.v.At(sample, own, 0);
    if (!copies()) return {k, v};
    float* v_to = to + e.keys * e.head_dim;
    CopyRows(k, views.k.row, e.keys, e.head_dim, to, e.head_dim);
    CopyRows(v, views.v.row, e.keys, e.value_dim, v_to, e.value_dim);
    return {to, v_to};
  }

  // Name rows of a head: in the tensors of k and v or their gradients, of q or dq, of y or dy.
  template <typename Buffers>
  void AddKeys(const Buffers& buffers, int64_t kv, RowsAhead& ahead) const {
    const int64_t sample = kv / e.kv_heads, own = kv % e.kv_heads;
    const auto* k = static_cast<const float*>(buffers[views.k_operand]);
    const auto* v = static_cast<const float*>(buffers[views.v_operand]);
    ahead.Add(k + views.k.At(sample, own, 0), views.k.row, e.head_dim, e.keys);
    ahead.Add(v + views.v.At(sample, own, 0), views.v.row, e.value_dim, e.keys);
  }
  void AddQueries(const void* q, int64_t head, RowsAhead& ahead) const {
    ahead.Add(static_cast<const float*>(q) + views.q.At(head / e.heads, head % e.heads, 0),
              views.q.row, e.head_dim, e.queries);
  }
  void AddResults(const void* y, int64_t head, RowsAhead& ahead) const {
    ahead.Add(static_cast<const float*>(y) + views.y.At(head / e.heads, head % e.heads, 0),
              views.y.row, e.value_dim, e.queries);
  }

  // Which head of k and v head `head` of q reads, both counted through the batch.
  int64_t KeyHead(int64_t head) const {
    return head / e.heads * e.kv_heads + head % e.heads / e.group();
  }

  // Of q's heads counted through the batch; k and v from Keys().
  AttentionHead Head(const KernelBuffers& b, int64_t head, std::pair<const float*, const float*> kv,
                     size_t mask_input) const {
    const auto* q = static_cast<const float*>(b.inputs[0]);
    return {q + views.q.At(head / e.heads, head % e.heads, 0), kv.first, kv.second,
            MaskOf(b, head, mask_input)};
  }

  const void* MaskOf(const KernelBuffers& b, int64_t head, size_t mask_input) const {
    if (mask_input >= b.inputs.size() || b.inputs[mask_input] == nullptr) return nullptr;
    const int64_t at = head / e.heads * mask[0] + head % e.heads * mask[1];
    return static_cast<const char*>(b.inputs[mask_input]) + at * (plan.mask_is_bool ? 1 : 4);
  }
};

}  // namespace ridge::cpu

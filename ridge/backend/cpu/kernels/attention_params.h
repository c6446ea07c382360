// A call of attention or its gradient, as the kernels see it.
#pragma once
#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "ridge/backend/backend.h"
#include "ridge/backend/cpu/kernels/attention_tiles.h"
#include "ridge/backend/cpu/kernels/tile_program.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/attention.h"

namespace ridge::cpu {

// Inputs.
inline constexpr size_t kAttentionMask = 3, kAttentionGradMask = 6, kAttentionDLogSumExp = 7;

// As CopyRows of floats, to and from bf16.
inline void CopyRows(const uint16_t* from, int64_t from_row, int64_t rows, int64_t width, float* to,
                     int64_t to_row) {
  for (int64_t r = 0; r < rows; ++r) WidenRow(from + r * from_row, width, to + r * to_row);
}
inline void CopyRows(const float* from, int64_t from_row, int64_t rows, int64_t width, uint16_t* to,
                     int64_t to_row) {
  for (int64_t r = 0; r < rows; ++r) RoundRow(from + r * from_row, width, to + r * to_row);
}

// A call as its kernels see it.  T: float, or uint16_t for bf16, of which kernels read and write
// copies in f32, whose rows are contiguous.
template <typename T>
struct AttentionParams {
  static constexpr bool kNarrow = !std::is_same_v<T, float>;

  AttentionExtents e;
  AttentionViews views;
  AttentionShape shape;
  std::array<int64_t, 4> mask{};  // strides

  AttentionParams(const OpCall& call, size_t mask_input)
      : e(ExtentsOf(call)), views(ViewsOf(call)) {
    shape = {.queries = e.queries,
             .keys = e.keys,
             .head_dim = e.head_dim,
             .value_dim = e.value_dim,
             .scale = static_cast<float>(call.number("scale")),
             .softcap = static_cast<float>(call.number("softcap")),
             .causal = call.integer("causal") != 0,
             .causal_offset = call.integer("causal_offset"),
             .q_row = kNarrow ? e.head_dim : views.q.row,
             .k_row = e.head_dim,  // of copies or of contiguous operands
             .v_row = e.value_dim,
             .y_row = kNarrow ? e.value_dim : views.y.row};
    if (!call.has_input(mask_input)) return;
    const TensorType& type = call.inputs[mask_input];
    mask = MaskStrides(e, type.dims);
    shape.mask_is_bool = type.dtype == DType::kBool;
    shape.mask_row = mask[2];
    shape.mask_col = mask[3];
  }

  bool copies() const { return kNarrow || views.k.row != e.head_dim || views.v.row != e.value_dim; }
  // Scratch for copies of k and v, or of dk and dv, of one head.
  int64_t CopyFloats() const {
    return copies() ? RoundUpFloats(e.keys * (e.head_dim + e.value_dim)) : 0;
  }

  // The same for q or dq, and for y or dy: these are copied if they have 16 bits.
  int64_t QueryFloats() const { return kNarrow ? RoundUpFloats(e.queries * e.head_dim) : 0; }
  int64_t ResultFloats() const { return kNarrow ? RoundUpFloats(e.queries * e.value_dim) : 0; }

  // Where a head begins, counted through the batch: in q or dq, in y or dy, in k and v.
  int64_t QueryAt(int64_t head) const { return views.q.At(head / e.heads, head % e.heads, 0); }
  int64_t ResultAt(int64_t head) const { return views.y.At(head / e.heads, head % e.heads, 0); }
  int64_t KeyAt(int64_t kv) const { return views.k.At(kv / e.kv_heads, kv % e.kv_heads, 0); }
  int64_t ValueAt(int64_t kv) const { return views.v.At(kv / e.kv_heads, kv % e.kv_heads, 0); }

  // k and v of a head of theirs, counted through the batch: in place, or copied into `to`.
  std::pair<const float*, const float*> Keys(const KernelBuffers& b, int64_t kv, float* to) const {
    const T* k = static_cast<const T*>(b.inputs[views.k_operand]) + KeyAt(kv);
    const T* v = static_cast<const T*>(b.inputs[views.v_operand]) + ValueAt(kv);
    if constexpr (!kNarrow) {
      if (!copies()) return {k, v};
    }
    float* v_to = to + e.keys * e.head_dim;
    CopyRows(k, views.k.row, e.keys, e.head_dim, to, e.head_dim);
    CopyRows(v, views.v.row, e.keys, e.value_dim, v_to, e.value_dim);
    return {to, v_to};
  }

  // A head of q, and of y or dy: in place, or 16-bit ones copied into `to`.
  const float* Queries(const void* q, int64_t head, float* to) const {
    const T* from = static_cast<const T*>(q) + QueryAt(head);
    if constexpr (kNarrow) {
      CopyRows(from, views.q.row, e.queries, e.head_dim, to, e.head_dim);
      return to;
    } else {
      return from;
    }
  }
  const float* Results(const void* y, int64_t head, float* to) const {
    const T* from = static_cast<const T*>(y) + ResultAt(head);
    if constexpr (kNarrow) {
      CopyRows(from, views.y.row, e.queries, e.value_dim, to, e.value_dim);
      return to;
    } else {
      return from;
    }
  }

  // Name rows of a head: in the tensors of k and v or their gradients, of q or dq, of y or dy.
  template <typename Buffers>
  void AddKeys(const Buffers& buffers, int64_t kv, PrefetchQueue& ahead) const {
    const auto* k = static_cast<const float*>(buffers[views.k_operand]);
    const auto* v = static_cast<const float*>(buffers[views.v_operand]);
    ahead.Add(k + KeyAt(kv), views.k.row, e.head_dim, e.keys);
    ahead.Add(v + ValueAt(kv), views.v.row, e.value_dim, e.keys);
  }
  void AddQueries(const void* q, int64_t head, PrefetchQueue& ahead) const {
    ahead.Add(static_cast<const float*>(q) + QueryAt(head), views.q.row, e.head_dim, e.queries);
  }
  void AddResults(const void* y, int64_t head, PrefetchQueue& ahead) const {
    ahead.Add(static_cast<const float*>(y) + ResultAt(head), views.y.row, e.value_dim, e.queries);
  }

  // Which head of k and v head `head` of q reads, both counted through the batch.
  int64_t KeyHead(int64_t head) const {
    return head / e.heads * e.kv_heads + head % e.heads / e.group();
  }

  const void* MaskOf(const KernelBuffers& b, int64_t head, size_t mask_input) const {
    if (mask_input >= b.inputs.size() || b.inputs[mask_input] == nullptr) return nullptr;
    const int64_t at = head / e.heads * mask[0] + head % e.heads * mask[1];
    return static_cast<const char*>(b.inputs[mask_input]) + at * (shape.mask_is_bool ? 1 : 4);
  }
};

}  // namespace ridge::cpu

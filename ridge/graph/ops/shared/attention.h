// What attention, its gradient and its kernels share: extents, the mask's strides, one row of
// scores, and the scores as a composition of other operators.
//
// score[i,j] = cap(scale * q[i] . k[j]) + mask[i,j], where cap(x) = softcap * tanh(x / softcap), or
// x when softcap is 0.  j is hidden from i (score -inf) where a bool mask is false, and with
// causal=1 where j > i + causal_offset.  Head h of q reads head h / (heads / kv_heads) of k and v.
//
// The attribute `layout` says how operands lie: "heads" is [B,H,T,D] as above.  "rows" is
// [B,T,H,D], what a projection writes.  "packed" has q, k and v in one operand [B,T,3,H,D], given
// as q, and no k and v.  y lies as q, in "packed" as [B,T,H,D]; logsumexp is [B,H,T] always.
#pragma once
#include <array>
#include <vector>

#include "ridge/graph/grad_builder.h"

namespace ridge {

struct AttentionExtents {
  int64_t batch = 0, heads = 0, kv_heads = 0;
  int64_t queries = 0, keys = 0;        // T, S
  int64_t head_dim = 0, value_dim = 0;  // D, Dv

  int64_t group() const { return heads / kv_heads; }  // heads of q that read one of k
  Dims Scores() const { return {batch, heads, queries, keys}; }
};

bool IsAttention(const OpDef& op);  // or its gradient

// REQUIRES of these three: CheckAttention() passed; q, k, v are inputs 0, 1, 2.
AttentionExtents ExtentsOf(const OpCall& call);
bool IsPacked(const OpCall& call);
// The dims of y.
Dims AttentionResultDims(const OpCall& call);

// Where rows lie in an operand, in elements; those of a row are neighbours.
struct AttentionView {
  int64_t base = 0, batch = 0, head = 0, row = 0;  // of the first row; strides
  int64_t At(int64_t b, int64_t h, int64_t i) const {
    return base + b * batch + h * head + i * row;
  }
};
// Gradients lie as what they belong to.
struct AttentionViews {
  AttentionView q, k, v, y;
  // Which input holds k and v (and which output of attention_grad dk and dv).
  size_t k_operand = 1, v_operand = 2;
};
AttentionViews ViewsOf(const OpCall& call);

// q, k and v fit each other, the mask (input `mask`) broadcasts, attributes are in range.
Status CheckAttention(const OpCall& call, size_t mask);

// The attributes of attention and attention_grad, with defaults.
AttrMap AttentionAttrs();

// Pairs (i, j) of one head that `causal` and `causal_offset` leave; as a double: it may be large.
double VisiblePairs(const OpCall& call);

// Keys that query i can see by causality: [0, result).
int64_t VisibleKeys(const OpCall& call, int64_t query);

// An index of the loops that devices can share: its dimensions of q, of k and v, of y, of logsumexp
// and of the mask, or Factor::kNone.
struct AttentionIndex {
  int q, kv, y, rows, mask;
};
// Batch, heads, and unless the order of tokens hides some, queries.  Heads of q that read one head
// of k go together.
std::vector<AttentionIndex> AttentionIndices(const OpCall& call, size_t mask);

// Where mask[b,h,i,j] lies: the sum of index times stride, 0 where the mask repeats.
std::array<int64_t, 4> MaskStrides(const AttentionExtents& e, const Dims& mask);

// Scores of one query for the references.
class AttentionRow {
 public:
  AttentionRow(const OpCall& call, size_t mask_input, std::span<const double* const> in);
  // Fills score and slope for query i of head h.
  void Compute(int64_t b, int64_t h, int64_t i);

  std::vector<double> score;  // [keys]; -inf where hidden
  std::vector<double> slope;  // d score / d (scale * q . k)

  const AttentionExtents& extents() const { return e_; }
  const AttentionViews& views() const { return views_; }

 private:
  const OpCall& call_;
  const AttentionExtents e_;
  const AttentionViews views_;
  std::array<int64_t, 4> mask_strides_{};
  const double *q_, *k_, *mask_;
  bool mask_is_bool_ = false;
};

// What `attention` says of these operands; ok when it takes them.
Status CheckAttentionOperands(const std::string& where, const std::vector<Value>& operands,
                              const AttrMap& attrs);

// REQUIRES of what follows: CheckAttentionOperands() passed.
// The same scores as nodes [batch, heads, queries, keys], stage by stage.
struct AttentionScores {
  Value scaled;  // scale * q k^T
  Value capped;
  Value masked;
};
AttentionScores ComposeAttentionScores(GraphBuilder& b, Value q, Value k, Value mask,
                                       const AttrMap& attrs);
// probabilities [batch, heads, queries, keys] times v [batch, kv_heads, keys, value_dim].
// In f32 in mixed precision if `of` has keep_f32.
Value MultiplyGrouped(Value probabilities, Value v, bool transpose_v, const AttrMap& of = {});

}  // namespace ridge

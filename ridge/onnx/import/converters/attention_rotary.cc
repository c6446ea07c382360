// ONNX converter: rotary position embedding.
//
// Su et al., RoFormer, 2021.  Pairs (x1, x2) of the first `rotary_embedding_dim` numbers of a head
// turn by the angle of their position: x1' = cos x1 - sin x2, x2' = sin x1 + cos x2.
#include <fmt/format.h>

#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/import/converters/attention.h"

namespace ridge {
namespace {

// x[..., begin:end] of the last dimension.
Value TakeLast(Value x, int64_t begin, int64_t end) {
  const auto last = static_cast<int64_t>(x.dims().size()) - 1;
  return Op("slice", {x}, {{"starts", {begin}}, {"ends", {end}}, {"axes", {last}}});
}

Value ConcatLast(std::vector<Value> parts) { return Concat(std::move(parts), -1); }

// x as [B,heads,T,D] or [B,T,heads,D].
struct Heads {
  Value x;
  int64_t batch = 0, seq_len = 0, head_dim = 0;
  bool heads_first = false;
};

Result<Heads> ReadHeads(OnnxNode& n) {
  const Value x = n[0];
  RIDGE_RETURN_IF_ERROR(n.status());
  const Dims d = x.dims();
  if (d.size() == 4) return Heads{x, d[0], d[2], d[3], true};
  const int64_t heads = n.integer("num_heads", 0);
  if (d.size() != 3 || heads <= 0 || d[2] % heads != 0) {
    return n.Error(
        fmt::format("X is {}; it must have rank 4, or rank 3 and a last extent that "
                    "num_heads {} divides",
                    TypeToString(x.type()), heads));
  }
  const int64_t head_dim = d[2] / heads;
  return Heads{ReshapeExactly(x, {d[0], d[1], heads, head_dim}), d[0], d[1], head_dim, false};
}

// Input `i` for each position, to broadcast over the heads: [B,1,T,half] or [B,T,1,half].
Result<Value> ReadCache(OnnxNode& n, size_t i, const Heads& h, int64_t half) {
  Value cache = n[i];
  if (n.has_input(3) && n.ok()) cache = Gather(cache, n[3], 0);
  const Dims wanted = {h.batch, h.seq_len, half};
  if (cache.dims() != wanted) {
    return n.Error(fmt::format("{} holds {} for the positions of X; it must be {}",
                               i == 1 ? "cos_cache" : "sin_cache", DimsToString(cache.dims()),
                               DimsToString(wanted)));
  }
  const Dims dims =
      h.heads_first ? Dims{h.batch, 1, h.seq_len, half} : Dims{h.batch, h.seq_len, 1, half};
  return ReshapeExactly(cache, dims);
}

}  // namespace

Result<Value> ConvertRotaryEmbedding(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const Heads h, ReadHeads(n));
  int64_t rotated = n.integer("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = h.head_dim;
  if (rotated < 0 || rotated > h.head_dim || rotated % 2 != 0) {
    return n.Error(fmt::format("{} of {} numbers of a head turn; it must be an even part of them",
                               rotated, h.head_dim));
  }
  RIDGE_ASSIGN_OR_RETURN(const Value cos, ReadCache(n, 1, h, rotated / 2));
  RIDGE_ASSIGN_OR_RETURN(const Value sin, ReadCache(n, 2, h, rotated / 2));
  const bool all = rotated == h.head_dim;
  const Value x = all ? h.x : TakeLast(h.x, 0, rotated);
  Value y =
      Op("rotary_embedding", {x, cos, sin}, {{"interleaved", n.integer("interleaved", 0) != 0}});
  if (!all) y = ConcatLast({y, TakeLast(h.x, rotated, h.head_dim)});
  RIDGE_RETURN_IF_ERROR(n.status());
  return h.heads_first ? y : ReshapeExactly(y, n[0].dims());
}

}  // namespace ridge

// attention: a block has a tile of queries of one head and up to 128 columns of y, and passes over
// the keys with a running maximum.
#include <algorithm>

#include "ridge/backend/cuda/kernels/attention_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr size_t kMask = 3;

constexpr std::string_view kForwardText = R"cuda(
RIDGE_KERNEL void attention($parameters) {
  alignas(32) __shared__ R as[TileSide<$TM>::kNumbers];
  alignas(32) __shared__ R bs[TileSide<$TB>::kNumbers];
  alignas(32) __shared__ R weights[kSide * $TN * TileSide<$TM>::kPitch];  // [key][query]
  const Index c0 = (Index)(blockIdx.x % $chunks) * (kSide * $TV);
  const Index i0 = (Index)(blockIdx.x / $chunks % $tiles) * (kSide * $TM);
  const Index row = blockIdx.x / ($chunks * $tiles), b = row / $heads, h = row % $heads;
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
  R out[$TM][$TV] = {}, largest[$TM], total[$TM];
#pragma unroll
  for (int i = 0; i < $TM; ++i) {
    largest[i] = -Infinity<R>();
    total[i] = 0;
  }
  const Index last = $last_key;
#pragma unroll 1
  for (Index j0 = 0; j0 < last; j0 += kSide * $TN) {
    R s[$TM][$TN] = {};
    BlockProduct<$TM, $TN, true, true>(
        s, 0, $head_dim, as, bs,
        [&](int place, Index d) {
          const bool inside = i0 + place < $queries && d < $head_dim;
          return inside ? (R)Load(q, RowOfQ(b, h, i0 + place) + d) : R(0);
        },
        [&](int place, Index d) {
          const bool inside = j0 + place < $keys && d < $head_dim;
          return inside ? (R)Load(k, RowOfK(b, h / $group, j0 + place) + d) : R(0);
        });
    // The thread's own scores, one after the other: together they would need too many registers.
    KeepOwn(s, weights);
#pragma unroll 1
    for (int e = 0; e < $TM * $TN; ++e) {
      const int query = Place<$TM>(ty, e / $TN), key = Place<$TN>(tx, e % $TN);
      R slope, &own = weights[key * TileSide<$TM>::kPitch + query];
      own = Score(own, b, h, i0 + query, j0 + key, slope$mask);
    }
#pragma unroll
    for (int i = 0; i < $TM; ++i) {
      const int query = Place<$TM>(ty, i);
      R most = -Infinity<R>();
#pragma unroll
      for (int j = 0; j < $TN; ++j) {
        s[i][j] = weights[Place<$TN>(tx, j) * TileSide<$TM>::kPitch + query];
        most = Larger(most, s[i][j]);
      }
      most = Larger(largest[i], BlockRowFold(most, Largest()));
      const R base = most == -Infinity<R>() ? R(0) : most;  // where nothing is seen yet
      const R shrink = exp(largest[i] - base);
      R sum = 0;
#pragma unroll
      for (int j = 0; j < $TN; ++j) {
        const R p = exp(s[i][j] - base);
        weights[Place<$TN>(tx, j) * TileSide<$TM>::kPitch + query] = p;
        sum += p;
      }
      total[i] = total[i] * shrink + BlockRowFold(sum, Sum());
      largest[i] = most;
#pragma unroll
      for (int c = 0; c < $TV; ++c) out[i][c] *= shrink;
    }
    BlockTimes<$TM, $TV>(out, kSide * $TN, weights, bs, [&](int place, int j) {
      const bool inside = j0 + j < $keys && c0 + place < $value_dim;
      return inside ? (R)Load(v, RowOfV(b, h / $group, j0 + j) + c0 + place) : R(0);
    });
  }
#pragma unroll
  for (int i = 0; i < $TM; ++i) {
    const Index query = i0 + Place<$TM>(ty, i);
    if (query >= $queries) continue;
    if (c0 == 0 && tx == 0) {
      const R base = largest[i] == -Infinity<R>() ? R(0) : largest[i];
      logsumexp[row * $queries + query] = base + log(total[i]);
    }
#pragma unroll
    for (int c = 0; c < $TV; ++c) {
      const Index column = c0 + Place<$TV>(tx, c);
      if (column >= $value_dim) continue;
      Store(y, RowOfY(b, h, query) + column, total[i] == 0 ? R(0) : out[i][c] / total[i]);
    }
  }
}
)cuda";

const char* WriteAttention(const OpDef& /*op*/, const OpCall& call, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const AttentionText attention(call, kMask);
  const AttentionExtents& e = attention.e;
  const int64_t tm = attention.ScoreSums(e.queries), tn = attention.ScoreSums(e.keys);
  const int64_t tv = attention.ColumnSums(e.value_dim);
  const int64_t chunks = std::max<int64_t>(CeilDiv(e.value_dim, 16 * tv), 1);
  const int64_t tiles = CeilDiv(e.queries, 16 * tm);
  Parameters p = attention.Operands();
  p.AddOutput(call, 0, "y");
  p.AddOutput(call, 1, "logsumexp");
  AttentionText::Names names = {{"parameters", p.text},
                                {"TM", std::to_string(tm)},
                                {"TN", std::to_string(tn)},
                                {"TV", std::to_string(tv)},
                                {"TB", std::to_string(std::max(tn, tv))},
                                {"chunks", std::to_string(chunks) + "u"},
                                {"tiles", std::to_string(tiles) + "u"},
                                {"last_key", attention.VisibleText("i0", 16 * tm)}};
  attention.AddExtents(names);
  text.in_place = false;
  text.source = attention.Begin() + FillText(kForwardText, names);
  return AddLaunch("attention", chunks * tiles * e.batch * e.heads, p, text);
}

}  // namespace

TextKernelDef AttentionTextKernel() {
  return {.name = "cuda.attention", .ops = {"attention"}, .write = WriteAttention};
}

}  // namespace ridge::cuda

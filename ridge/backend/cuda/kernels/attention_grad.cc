// attention_grad: first delta = sum(dy y) - dlogsumexp a query; then dq by blocks of queries that
// pass over keys, dk and dv by blocks of keys that pass over the queries of all heads that read
// them.
//
// Each computes the scores of a tile again, from logsumexp, and no two blocks add to one number.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/attention_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr size_t kY = 3, kLogSumExp = 4, kDy = 5, kMask = 6, kDLogSumExp = 7;

// A warp a query.
constexpr std::string_view kDeltaText = R"cuda(
template <class F> RIDGE_FUNCTION R BlockWarpFold(R x, F fold) {
  for (int distance = 16; distance > 0; distance >>= 1)
    x = fold(x, __shfl_xor_sync(0xffffffffu, x, distance));
  return x;
}
RIDGE_KERNEL void deltas($parameters) {
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (i64 row = (i64)blockIdx.x * warps + threadIdx.x / 32; row < $rows;
       row += (i64)gridDim.x * warps) {
    const Index head = (Index)(row / $queries);
    const Index from = RowOfY(head / $heads, head % $heads, (Index)(row % $queries));
    R sum = 0;
    for (int c = lane; c < $value_dim; c += 32) sum += (R)Load(y, from + c) * (R)Load(dy, from + c);
    sum = BlockWarpFold(sum, Sum());
    if (lane == 0) delta[row] = sum$less;
  }
}
)cuda";

// dq: rows are queries and columns keys; dk and dv: the other way round.
constexpr std::string_view kBackwardText = R"cuda(
RIDGE_KERNEL void $name($parameters) {
  alignas(32) __shared__ R as[TileSide<$TM>::kNumbers];
  alignas(32) __shared__ R bs[TileSide<$TB>::kNumbers];
  alignas(32) __shared__ R weights[kSide * $TN * TileSide<$TM>::kPitch];  // [column][row]
  const Index c0 = (Index)(blockIdx.x % $chunks) * (kSide * $TC);
  const Index row0 = (Index)(blockIdx.x / $chunks % $tiles) * (kSide * $TM);
  const Index head = blockIdx.x / ($chunks * $tiles) % $own_heads;
  const Index b = blockIdx.x / ($chunks * $tiles * $own_heads);
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
  R out[$TM][$TC] = {};
  for (Index h = $first_head; h < $last_head; ++h) {
    const Index kv = h / $group;
    const Index end = $end;
#pragma unroll 1
    for (Index column0 = $begin; column0 < end; column0 += kSide * $TN) {
      R s[$TM][$TN] = {};
      BlockProduct<$TM, $TN, true, true>(
          s, 0, $head_dim, as, bs,
          [&](int place, Index d) {
            const Index i = row0 + place;
            return i < $rows && d < $head_dim ? (R)Load($row_left + d) : R(0);
          },
          [&](int place, Index d) {
            const Index i = column0 + place;
            return i < $columns && d < $head_dim ? (R)Load($column_left + d) : R(0);
          });
      // The thread's own weights, one after the other: together they would need too many registers.
      KeepOwn(s, weights);
#pragma unroll 1
      for (int e = 0; e < $TM * $TN; ++e) {
        const int row = Place<$TM>(ty, e / $TN), column = Place<$TN>(tx, e % $TN);
        R slope, &own = weights[column * TileSide<$TM>::kPitch + row];
        const R score = Score(own, b, h, $query0 + $query, $key0 + $key, slope$mask);
        own = 0;
        if (score == -Infinity<R>()) continue;
        own = exp(score - logsumexp[(b * $heads + h) * $queries + $query0 + $query])$slope;
      }
$slopes
      BlockTimes<$TM, $TC>(out, kSide * $TN, weights, bs, [&](int place, int j) {
        const Index i = column0 + j, d = c0 + place;
        return i < $columns && d < $width ? (R)Load($column_right + d) : R(0);
      });
    }
  }
#pragma unroll
  for (int i = 0; i < $TM; ++i) {
#pragma unroll
    for (int c = 0; c < $TC; ++c) {
      const Index row = row0 + Place<$TM>(ty, i), column = c0 + Place<$TC>(tx, c);
      if (row < $rows && column < $width) Store(grad, $grad_row + column, out[i][c]);
    }
  }
}
)cuda";

// The second product of dq and dk.
constexpr std::string_view kSlopesText = R"cuda(
      R dp[$TM][$TN] = {};
      BlockProduct<$TM, $TN, true, true>(
          dp, 0, $value_dim, as, bs,
          [&](int place, Index d) {
            const Index i = row0 + place;
            return i < $rows && d < $value_dim ? (R)Load($row_slope + d) : R(0);
          },
          [&](int place, Index d) {
            const Index i = column0 + place;
            return i < $columns && d < $value_dim ? (R)Load($column_slope + d) : R(0);
          });
#pragma unroll
      for (int i = 0; i < $TM; ++i) {
#pragma unroll
        for (int j = 0; j < $TN; ++j) {
          const int row = Place<$TM>(ty, i), column = Place<$TN>(tx, j);
          R& own = weights[column * TileSide<$TM>::kPitch + row];
          if (own != 0) own *= dp[i][j] - delta[(b * $heads + h) * $queries + $query0 + $query];
        }
      })cuda";

enum class Gradient : uint8_t { kQ, kK, kV };
using Names = AttentionText::Names;

void AddDeltas(const AttentionText& a, int64_t rows, KernelText& text) {
  Parameters p;
  p.AddInput(a.call, kY, "y");
  p.AddInput(a.call, kDy, "dy");
  const bool less = a.call.has_input(kDLogSumExp);
  if (less) p.AddInput(a.call, kDLogSumExp, "dlogsumexp");
  p.Add("R* delta", Argument::Workspace());
  Names names = {{"parameters", p.text},
                 {"rows", fmt::format("{}ll", rows)},
                 {"less", less ? " - dlogsumexp[row]" : ""}};
  a.AddExtents(names);
  text.source += FillText(kDeltaText, names);
  text.launches.push_back({"deltas", BlocksFor(rows * kWarpThreads), kBlockThreads, p.arguments});
}

Parameters GradientParameters(const AttentionText& a, size_t output) {
  Parameters p = a.Operands();
  p.AddInput(a.call, kLogSumExp, "logsumexp");
  p.AddInput(a.call, kDy, "dy");
  p.Add("const R* delta", Argument::Workspace());
  p.AddOutput(a.call, output, "grad");
  return p;
}

// The first query that sees a key of `row0` or later.
std::string FirstQueryText(const AttentionText& a) {
  if (a.call.integer("causal") == 0) return "0";
  return fmt::format("(Index)Limited((i64)row0 - {}ll, 0ll, {}ll)", a.causal_offset, a.e.queries);
}

constexpr const char *kRowOfQ = "q, RowOfQ(b, h, i)", *kRowOfK = "k, RowOfK(b, kv, i)",
                     *kRowOfV = "v, RowOfV(b, kv, i)", *kRowOfDy = "dy, RowOfY(b, h, i)";

// Who is the row and who the column of a tile of `rows` rows: of dq
Names RolesOfQ(const AttentionText& a, int64_t rows) {
  return {{"query", "row"},
          {"key", "column"},
          {"query0", "row0"},
          {"key0", "column0"},
          {"first_head", "head"},
          {"last_head", "head + 1"},
          {"begin", "0"},
          {"end", a.VisibleText("row0", rows)},
          {"row_left", kRowOfQ},
          {"column_left", kRowOfK},
          {"row_slope", kRowOfDy},
          {"column_slope", kRowOfV},
          {"column_right", kRowOfK},
          {"grad_row", "RowOfQ(b, head, row)"}};
}

// and of dk or dv.
Names RolesOfKeys(const AttentionText& a, bool is_k) {
  const std::string group = IndexNumber(a.e.group());
  return {{"query", "column"},
          {"key", "row"},
          {"query0", "column0"},
          {"key0", "row0"},
          {"first_head", "head * " + group},
          {"last_head", "(head + 1) * " + group},
          {"begin", FirstQueryText(a)},
          {"end", IndexNumber(a.e.queries)},
          {"row_left", kRowOfK},
          {"column_left", kRowOfQ},
          {"row_slope", kRowOfV},
          {"column_slope", kRowOfDy},
          {"column_right", is_k ? kRowOfQ : kRowOfDy},
          {"grad_row", is_k ? "RowOfK(b, head, row)" : "RowOfV(b, head, row)"}};
}

// What ds has that p has not.
void AddSlopes(const AttentionText& a, bool slopes, Names& names) {
  names.emplace_back("slope",
                     slopes ? fmt::format(" * slope * {}", Literal(a.call.number("scale"))) : "");
  names.emplace_back("slopes", slopes ? FillText(kSlopesText, names) : "");
}

// One gradient: `rows` of `heads` heads, `width` numbers each.
struct GradientShape {
  const char* name;
  size_t output;
  int64_t heads, rows, columns, width;
};

GradientShape ShapeOf(const AttentionText& a, Gradient of) {
  const AttentionExtents& e = a.e;
  if (of == Gradient::kQ) return {"grad_q", 0, e.heads, e.queries, e.keys, e.head_dim};
  if (of == Gradient::kK)
    return {"grad_k", a.views.k_operand, e.kv_heads, e.keys, e.queries, e.head_dim};
  return {"grad_v", a.views.v_operand, e.kv_heads, e.keys, e.queries, e.value_dim};
}

const char* AddGradient(const AttentionText& a, Gradient of, KernelText& text) {
  const GradientShape shape = ShapeOf(a, of);
  const int64_t tm = a.ScoreSums(shape.rows), tn = a.ScoreSums(shape.columns);
  const int64_t tc = a.ColumnSums(shape.width);
  const int64_t chunks = CeilDiv(shape.width, 16 * tc), tiles = CeilDiv(shape.rows, 16 * tm);
  const int64_t blocks = chunks * tiles * shape.heads * a.e.batch;
  if (blocks == 0) return nullptr;
  const Parameters p = GradientParameters(a, shape.output);
  Names names = of == Gradient::kQ ? RolesOfQ(a, 16 * tm) : RolesOfKeys(a, of == Gradient::kK);
  names.insert(names.end(), {{"name", shape.name},
                             {"parameters", p.text},
                             {"TM", std::to_string(tm)},
                             {"TN", std::to_string(tn)},
                             {"TC", std::to_string(tc)},
                             {"TB", std::to_string(std::max(tn, tc))},
                             {"chunks", fmt::format("{}u", chunks)},
                             {"tiles", fmt::format("{}u", tiles)},
                             {"own_heads", fmt::format("{}u", shape.heads)},
                             {"rows", IndexNumber(shape.rows)},
                             {"columns", IndexNumber(shape.columns)},
                             {"width", IndexNumber(shape.width)}});
  a.AddExtents(names);
  AddSlopes(a, of != Gradient::kV, names);
  text.source += FillText(kBackwardText, names);
  return AddLaunch(shape.name, blocks, p, text);
}

const char* WriteAttentionGrad(const OpDef& /*op*/, const OpCall& call, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const AttentionText attention(call, kMask);
  const AttentionExtents& e = attention.e;
  const int64_t rows = e.batch * e.heads * e.queries;
  text.in_place = false;
  text.source = attention.Begin();
  text.workspace_bytes = RoundUp(std::max<int64_t>(rows, 1) * 8, 256);
  if (rows > 0) AddDeltas(attention, rows, text);
  for (const Gradient of : {Gradient::kQ, Gradient::kK, Gradient::kV}) {
    if (const char* reason = AddGradient(attention, of, text); reason != nullptr) return reason;
  }
  return nullptr;
}

}  // namespace

TextKernelDef AttentionGradTextKernel() {
  return {.name = "cuda.attention_grad", .ops = {"attention_grad"}, .write = WriteAttentionGrad};
}

}  // namespace ridge::cuda

// attention and its gradient: scores tile by tile, never whole.
//
// Forward: a block has a tile of queries of one head and up to 128 columns of y, and passes over
// the keys with a running maximum.  Backward: first delta = sum(dy y) - dlogsumexp a query; then dq
// by blocks of queries that pass over keys, dk and dv by blocks of keys that pass over the queries
// of all heads that read them.  Each computes the scores of a tile again, and nothing is added by
// two.
#include "ridge/graph/ops/shared/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/pointwise_text.h"
#include "ridge/backend/cuda/kernels/product_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

// Where rows lie, and what the scores of both operators are.
constexpr std::string_view kScoreText = R"cuda(
RIDGE_FUNCTION Index RowOfQ(Index b, Index h, Index i) { return $q; }
RIDGE_FUNCTION Index RowOfK(Index b, Index h, Index i) { return $k; }
RIDGE_FUNCTION Index RowOfV(Index b, Index h, Index i) { return $v; }
RIDGE_FUNCTION Index RowOfY(Index b, Index h, Index i) { return $y; }

// The score of query i and key j from their product, -inf where j is hidden or one of them beyond
// the end; slope is its derivative by scale * dot.
RIDGE_FUNCTION R Score(R dot, Index b, Index h, Index i, Index j, R& slope$mask_parameter) {
  slope = R(1);
  if (i >= $queries || j >= $keys$or_hidden) return -Infinity<R>();
  R s = $scale * dot;
$cap$add  return s;
}

// A thread's part of a tile, transposed in shared memory.
template <int TM, int TN> RIDGE_FUNCTION void KeepOwn(const R (&part)[TM][TN], R* tile) {
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; ++j)
      tile[Place<TN>(tx, j) * TileSide<TM>::kPitch + Place<TM>(ty, i)] = part[i][j];
  }
}

// Over the 16 threads that have a row of a tile.
template <class F> RIDGE_FUNCTION R BlockRowFold(R x, F fold) {
  for (int distance = 8; distance > 0; distance >>= 1)
    x = fold(x, __shfl_xor_sync(0xffffffffu, x, distance));
  return x;
}
)cuda";

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

std::string Number(int64_t value) { return fmt::format("(Index){}ll", value); }

std::string ViewText(const AttentionView& view) {
  return fmt::format("{} + b * {} + h * {} + i * {}", Number(view.base), Number(view.batch),
                     Number(view.head), Number(view.row));
}

// What both operators fill in.
class AttentionWriter {
 public:
  AttentionWriter(const OpCall& call, size_t mask)
      : call_(call),
        mask_(mask),
        e_(ExtentsOf(call)),
        views_(ViewsOf(call)),
        offset_(call.integer("causal_offset")) {
    compute_ = call.inputs[0].dtype == DType::kF64 ? "double" : "float";
    const bool wide = call.inputs[0].dtype == DType::kF64;
    most_ = wide ? 2 : 4;
    most_out_ = wide ? 4 : 8;
  }

  const char* WriteForward(KernelText& text) {
    if (!StoresAll(call_)) return refusal::kDType;
    const int64_t tm = SumsAlong(e_.queries, most_), tn = SumsAlong(e_.keys, most_);
    const int64_t tv = SumsAlong(e_.value_dim, most_out_);
    const int64_t chunks = std::max<int64_t>(CeilDiv(e_.value_dim, 16 * tv), 1);
    const int64_t tiles = CeilDiv(e_.queries, 16 * tm);
    Parameters p = Operands();
    AddMask(p);
    p.AddOutput(call_, 0, "y");
    p.AddOutput(call_, 1, "logsumexp");
    Names names = {{"parameters", p.text},
                   {"TM", std::to_string(tm)},
                   {"TN", std::to_string(tn)},
                   {"TV", std::to_string(tv)},
                   {"TB", std::to_string(std::max(tn, tv))},
                   {"chunks", fmt::format("{}u", chunks)},
                   {"tiles", fmt::format("{}u", tiles)},
                   {"last_key", VisibleText("i0", tm)}};
    AddExtents(names);
    text.in_place = false;
    text.source = Begin() + FillText(kForwardText, names);
    return AddLaunch("attention", chunks * tiles * e_.batch * e_.heads, p, text);
  }

  const char* WriteBackward(KernelText& text) {
    if (!StoresAll(call_)) return refusal::kDType;
    text.in_place = false;
    text.source = Begin();
    const int64_t rows = e_.batch * e_.heads * e_.queries;
    text.workspace_bytes = RoundUp(std::max<int64_t>(rows, 1) * 8, 256);
    if (rows > 0) AddDeltas(rows, text);
    const char* reason = AddGradient(Gradient::kQ, text);
    if (reason == nullptr) reason = AddGradient(Gradient::kK, text);
    return reason != nullptr ? reason : AddGradient(Gradient::kV, text);
  }

 private:
  using Names = std::vector<std::pair<std::string_view, std::string>>;
  enum class Gradient : uint8_t { kQ, kK, kV };

  Parameters Operands() const {
    Parameters p;
    p.AddInput(call_, 0, "q");
    p.AddInput(call_, views_.k_operand, "k");
    p.AddInput(call_, views_.v_operand, "v");
    return p;
  }

  void AddMask(Parameters& p) const {
    if (call_.has_input(mask_)) p.AddInput(call_, mask_, "mask");
  }

  void AddExtents(Names& names) const {
    names.insert(names.end(), {{"heads", Number(e_.heads)},
                               {"group", Number(e_.group())},
                               {"queries", Number(e_.queries)},
                               {"keys", Number(e_.keys)},
                               {"head_dim", Number(e_.head_dim)},
                               {"value_dim", Number(e_.value_dim)},
                               {"mask", call_.has_input(mask_) ? ", mask" : ""}});
  }

  const char* AddLaunch(const char* function, int64_t blocks, const Parameters& p,
                        KernelText& text) const {
    if (blocks > std::numeric_limits<int32_t>::max()) return refusal::kSize;
    text.launches.push_back({function, blocks, kBlockThreads, p.arguments});
    return nullptr;
  }

  // Types and functions.
  std::string Begin() const {
    int64_t largest = e_.batch * e_.heads * e_.queries;
    for (size_t i = 0; i < call_.inputs.size(); ++i)
      if (call_.has_input(i)) largest = std::max(largest, call_.inputs[i].elements());
    largest = std::max(largest, call_.outputs[0].elements());
    return fmt::format("typedef {} R;\ntypedef {} Index;\n", compute_, IndexType(largest)) +
           std::string(TileFunctions()) + ScoreText();
  }

  std::string ScoreText() const {
    Names names = {{"q", ViewText(views_.q)},
                   {"k", ViewText(views_.k)},
                   {"v", ViewText(views_.v)},
                   {"y", ViewText(views_.y)},
                   {"queries", Number(e_.queries)},
                   {"keys", Number(e_.keys)},
                   {"scale", Literal(call_.number("scale"))}};
    const double cap = call_.number("softcap");
    names.emplace_back("cap", cap > 0 ? fmt::format("  const R t = tanh(s / {0});\n  s = {0} * t;\n"
                                                    "  slope = R(1) - t * t;\n",
                                                    Literal(cap))
                                      : "");
    AddHidden(names);
    return FillText(kScoreText, names);
  }

  // Causality and the mask.
  void AddHidden(Names& names) const {
    std::string hidden, add, parameter;
    if (call_.integer("causal") != 0) hidden = fmt::format(" || (i64)j > (i64)i + {}ll", offset_);
    if (call_.has_input(mask_)) {
      const TensorType& type = call_.inputs[mask_];
      const std::array<int64_t, 4> strides = MaskStrides(e_, type.dims);
      const std::string at =
          fmt::format("b * {} + h * {} + i * {} + j * {}", Number(strides[0]), Number(strides[1]),
                      Number(strides[2]), Number(strides[3]));
      parameter = fmt::format(", const {}* mask", StorageType(type.dtype));
      if (type.dtype == DType::kBool) {
        hidden += fmt::format(" || mask[{}].bits == 0", at);
      } else {
        add = fmt::format("  s += (R)Load(mask, {});\n", at);
      }
    }
    names.emplace_back("or_hidden", hidden);
    names.emplace_back("add", add);
    names.emplace_back("mask_parameter", parameter);
  }

  // The end of the keys that some of 16 tm queries from `first` on see.
  std::string VisibleText(const char* first, int64_t tm) const {
    if (call_.integer("causal") == 0) return Number(e_.keys);
    return fmt::format("(Index)Limited((i64){} + {}ll, 0ll, {}ll)", first, 16 * tm + offset_,
                       e_.keys);
  }

  void AddDeltas(int64_t rows, KernelText& text) const {
    constexpr size_t kY = 3, kDy = 5, kDLogSumExp = 7;
    Parameters p;
    p.AddInput(call_, kY, "y");
    p.AddInput(call_, kDy, "dy");
    const bool less = call_.has_input(kDLogSumExp);
    if (less) p.AddInput(call_, kDLogSumExp, "dlogsumexp");
    p.Add("R* delta", Argument::Workspace());
    Names names = {{"parameters", p.text},
                   {"rows", fmt::format("{}ll", rows)},
                   {"less", less ? " - dlogsumexp[row]" : ""}};
    AddExtents(names);
    text.source += FillText(kDeltaText, names);
    text.launches.push_back({"deltas", BlocksFor(rows * kWarpThreads), kBlockThreads, p.arguments});
  }

  Parameters GradientParameters(Gradient of) const {
    constexpr size_t kLogSumExp = 4, kDy = 5;
    Parameters p = Operands();
    p.AddInput(call_, kLogSumExp, "logsumexp");
    p.AddInput(call_, kDy, "dy");
    AddMask(p);
    p.Add("const R* delta", Argument::Workspace());
    const size_t output = of == Gradient::kQ   ? 0
                          : of == Gradient::kK ? views_.k_operand
                                               : views_.v_operand;
    p.AddOutput(call_, output, "grad");
    return p;
  }

  const char* AddGradient(Gradient of, KernelText& text) const {
    const bool queries = of == Gradient::kQ;  // the rows are
    const int64_t rows = queries ? e_.queries : e_.keys, columns = queries ? e_.keys : e_.queries;
    const int64_t width = of == Gradient::kV ? e_.value_dim : e_.head_dim;
    const int64_t heads = queries ? e_.heads : e_.kv_heads;
    if (e_.batch * heads * rows * width == 0) return nullptr;
    const int64_t tm = SumsAlong(rows, most_), tn = SumsAlong(columns, most_);
    const int64_t tc = SumsAlong(width, most_out_);
    const int64_t chunks = CeilDiv(width, 16 * tc), tiles = CeilDiv(rows, 16 * tm);
    const char* name = queries ? "grad_q" : of == Gradient::kK ? "grad_k" : "grad_v";
    const Parameters p = GradientParameters(of);
    Names names = {{"name", name},
                   {"parameters", p.text},
                   {"TM", std::to_string(tm)},
                   {"TN", std::to_string(tn)},
                   {"TC", std::to_string(tc)},
                   {"TB", std::to_string(std::max(tn, tc))},
                   {"chunks", fmt::format("{}u", chunks)},
                   {"tiles", fmt::format("{}u", tiles)},
                   {"own_heads", fmt::format("{}u", heads)},
                   {"rows", Number(rows)},
                   {"columns", Number(columns)},
                   {"width", Number(width)}};
    AddExtents(names);
    AddRoles(of, tm, names);
    AddSlopes(of, names);
    text.source += FillText(kBackwardText, names);
    return AddLaunch(name, chunks * tiles * heads * e_.batch, p, text);
  }

  // Who is the row and who the column of a tile.
  void AddRoles(Gradient of, int64_t tm, Names& names) const {
    const std::string q = "q, RowOfQ(b, h, i)", k = "k, RowOfK(b, kv, i)";
    const std::string v = "v, RowOfV(b, kv, i)", dy = "dy, RowOfY(b, h, i)";
    const bool queries = of == Gradient::kQ;
    const std::string group = Number(e_.group());
    const bool causal = !queries && call_.integer("causal") != 0;
    const std::string begin =
        causal ? fmt::format("(Index)Limited((i64)row0 - {}ll, 0ll, {}ll)", offset_, e_.queries)
               : "0";
    names.insert(names.end(), {{"query", queries ? "row" : "column"},
                               {"key", queries ? "column" : "row"},
                               {"query0", queries ? "row0" : "column0"},
                               {"key0", queries ? "column0" : "row0"},
                               {"first_head", queries ? "head" : "head * " + group},
                               {"last_head", queries ? "head + 1" : "(head + 1) * " + group},
                               {"begin", begin},
                               {"end", queries ? VisibleText("row0", tm) : Number(e_.queries)},
                               {"row_left", queries ? q : k},
                               {"column_left", queries ? k : q},
                               {"row_slope", queries ? dy : v},
                               {"column_slope", queries ? v : dy},
                               {"column_right", of == Gradient::kQ   ? k
                                                : of == Gradient::kK ? q
                                                                     : dy},
                               {"grad_row", of == Gradient::kQ   ? "RowOfQ(b, head, row)"
                                            : of == Gradient::kK ? "RowOfK(b, head, row)"
                                                                 : "RowOfV(b, head, row)"}});
  }

  // What ds has that p has not.
  void AddSlopes(Gradient of, Names& names) const {
    const bool slopes = of != Gradient::kV;
    names.emplace_back("slope",
                       slopes ? fmt::format(" * slope * {}", Literal(call_.number("scale"))) : "");
    names.emplace_back("slopes", slopes ? FillText(kSlopesText, names) : "");
  }

  const OpCall& call_;
  const size_t mask_;
  const AttentionExtents e_;
  const AttentionViews views_;
  const int64_t offset_;
  const char* compute_ = "float";
  int64_t most_ = 4, most_out_ = 8;  // sums of a thread along a side of scores, of columns of y
};

const char* WriteAttention(const OpDef& /*op*/, const OpCall& call, KernelText& text) {
  constexpr size_t kMask = 3;
  return AttentionWriter(call, kMask).WriteForward(text);
}

const char* WriteAttentionGrad(const OpDef& /*op*/, const OpCall& call, KernelText& text) {
  constexpr size_t kMask = 6;
  return AttentionWriter(call, kMask).WriteBackward(text);
}

}  // namespace

TextKernelDef AttentionTextKernel() {
  return {.name = "cuda.attention", .ops = {"attention"}, .write = WriteAttention};
}
TextKernelDef AttentionGradTextKernel() {
  return {.name = "cuda.attention_grad", .ops = {"attention_grad"}, .write = WriteAttentionGrad};
}

}  // namespace ridge::cuda

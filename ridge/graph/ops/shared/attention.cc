#include "ridge/graph/ops/shared/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ridge/graph/axes.h"
#include "ridge/graph/keep_f32.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/reduce.h"

namespace ridge {
namespace {

constexpr int64_t kLargestOffset = int64_t{1} << 48;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Layout : uint8_t { kHeads, kRows, kPacked };

Layout LayoutOf(const OpCall& call) {
  const std::string& layout = call.text("layout");
  return layout == "rows" ? Layout::kRows : layout == "packed" ? Layout::kPacked : Layout::kHeads;
}

// Which dimensions are heads and positions.
size_t HeadsAt(Layout layout) { return layout == Layout::kHeads ? 1 : 2; }
size_t PositionsAt(Layout layout) { return layout == Layout::kHeads ? 2 : 1; }

Status CheckLayout(const OpCall& call) {
  const std::string& layout = call.text("layout");
  if (layout == "heads" || layout == "rows" || layout == "packed") return Status();
  return CallError(call, fmt::format("layout is \"{}\"; it must be heads, rows or packed", layout));
}

Status CheckPacked(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "q"));
  const TensorType& q = call.inputs[0];
  const bool alone = !call.has_input(1) && !call.has_input(2);
  if (alone && q.rank() == 5 && q.dims[2] == 3) return Status();
  return CallError(call, fmt::format("q is {}{}; packed, it must be [batch, positions, 3, heads, "
                                     "head_dim], without k and v",
                                     TypeToString(q), alone ? "" : " and k or v is given"));
}

Status CheckRanks(const OpCall& call) {
  const char* names[] = {"q", "k", "v"};
  for (size_t i = 0; i < 3; ++i) {
    if (!call.has_input(i))
      return CallError(call, fmt::format("input {} ({}) must be given", i, names[i]));
    RIDGE_RETURN_IF_ERROR(CheckFloat(call, i, names[i]));
    if (call.inputs[i].rank() == 4) continue;
    const bool heads = LayoutOf(call) == Layout::kHeads;
    return CallError(call, fmt::format("{} is {}; it must be [batch, {}, head_dim]", names[i],
                                       TypeToString(call.inputs[i]),
                                       heads ? "heads, positions" : "positions, heads"));
  }
  return Status();
}

// k is [B,Hkv,S,D] and v [B,Hkv,S,Dv] for q [B,H,T,D].
Status CheckOperandTypes(const OpCall& call) {
  const TensorType &q = call.inputs[0], &k = call.inputs[1], &v = call.inputs[2];
  const size_t heads = HeadsAt(LayoutOf(call));
  const TensorType k_wanted{q.dtype, {q.dims[0], k.dims[1], k.dims[2], q.dims[3]}};
  RIDGE_RETURN_IF_ERROR(CheckType(call, 1, "k", k_wanted, "the batch and head_dim of q"));
  const TensorType v_wanted{q.dtype, {k.dims[0], k.dims[1], k.dims[2], v.dims[3]}};
  RIDGE_RETURN_IF_ERROR(CheckType(call, 2, "v", v_wanted, "the positions of k"));
  if (k.dims[heads] > 0 && q.dims[heads] % k.dims[heads] == 0) return Status();
  return CallError(call, fmt::format("q has {} heads, k has {}; the heads of q must be a multiple "
                                     "of those of k",
                                     q.dims[heads], k.dims[heads]));
}

Status CheckMask(const OpCall& call, size_t mask) {
  const TensorType& type = call.inputs[mask];
  const Dims scores = ExtentsOf(call).Scores();
  const Result<Dims> both = BroadcastDims(type.dims, scores);
  const bool kind = type.dtype == DType::kBool || type.dtype == call.inputs[0].dtype;
  if (kind && both.ok() && *both == scores) return Status();
  return CallError(
      call, fmt::format("mask is {}; it must be bool or {} and broadcast to {}", TypeToString(type),
                        DTypeName(call.inputs[0].dtype), DimsToString(scores)));
}

Status CheckAttributes(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, "causal"));
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, kKeepF32));
  RIDGE_RETURN_IF_ERROR(CheckNumber(call, "softcap", kInfinity));
  if (!std::isfinite(call.number("scale"))) {
    return CallError(call, fmt::format("scale is {}; it must be finite", call.number("scale")));
  }
  const int64_t offset = call.integer("causal_offset");
  if (offset >= -kLargestOffset && offset <= kLargestOffset) return Status();
  return CallError(call, fmt::format("causal_offset is {}; it must be in [{}, {}]", offset,
                                     -kLargestOffset, kLargestOffset));
}

}  // namespace

bool IsAttention(const OpDef& op) { return op.name == "attention" || op.name == "attention_grad"; }

bool IsPacked(const OpCall& call) { return LayoutOf(call) == Layout::kPacked; }

AttentionExtents ExtentsOf(const OpCall& call) {
  const Layout layout = LayoutOf(call);
  const Dims& q = call.inputs[0].dims;
  if (layout == Layout::kPacked) {
    return {.batch = q[0],
            .heads = q[3],
            .kv_heads = q[3],
            .queries = q[1],
            .keys = q[1],
            .head_dim = q[4],
            .value_dim = q[4]};
  }
  const Dims& k = call.inputs[1].dims;
  const size_t heads = HeadsAt(layout), positions = PositionsAt(layout);
  return {.batch = q[0],
          .heads = q[heads],
          .kv_heads = k[heads],
          .queries = q[positions],
          .keys = k[positions],
          .head_dim = q[3],
          .value_dim = call.inputs[2].dims[3]};
}

Dims AttentionResultDims(const OpCall& call) {
  const AttentionExtents e = ExtentsOf(call);
  if (LayoutOf(call) == Layout::kHeads) return {e.batch, e.heads, e.queries, e.value_dim};
  return {e.batch, e.queries, e.heads, e.value_dim};
}

namespace {

AttentionView HeadsView(int64_t heads, int64_t rows, int64_t width) {
  return {0, heads * rows * width, rows * width, width};
}
// `parts` operands of one row lie side by side; this is number `part`.
AttentionView RowsView(int64_t heads, int64_t rows, int64_t width, int64_t parts, int64_t part) {
  const int64_t row = heads * width;
  return {part * row, rows * parts * row, width, parts * row};
}

}  // namespace

AttentionViews ViewsOf(const OpCall& call) {
  const AttentionExtents e = ExtentsOf(call);
  const Layout layout = LayoutOf(call);
  if (layout == Layout::kHeads) {
    return {HeadsView(e.heads, e.queries, e.head_dim), HeadsView(e.kv_heads, e.keys, e.head_dim),
            HeadsView(e.kv_heads, e.keys, e.value_dim), HeadsView(e.heads, e.queries, e.value_dim)};
  }
  const AttentionView y = RowsView(e.heads, e.queries, e.value_dim, 1, 0);
  if (layout == Layout::kRows) {
    return {RowsView(e.heads, e.queries, e.head_dim, 1, 0),
            RowsView(e.kv_heads, e.keys, e.head_dim, 1, 0),
            RowsView(e.kv_heads, e.keys, e.value_dim, 1, 0), y};
  }
  const auto part = [&](int64_t i) { return RowsView(e.heads, e.queries, e.head_dim, 3, i); };
  return {part(0), part(1), part(2), y, /*k_operand=*/0, /*v_operand=*/0};
}

Status CheckAttention(const OpCall& call, size_t mask) {
  RIDGE_RETURN_IF_ERROR(CheckLayout(call));
  if (IsPacked(call)) {
    RIDGE_RETURN_IF_ERROR(CheckPacked(call));
  } else {
    RIDGE_RETURN_IF_ERROR(CheckRanks(call));
    RIDGE_RETURN_IF_ERROR(CheckOperandTypes(call));
  }
  if (call.has_input(mask)) RIDGE_RETURN_IF_ERROR(CheckMask(call, mask));
  return CheckAttributes(call);
}

AttrMap AttentionAttrs() {
  return {{"scale", 1.0},   {"causal", 0},       {"causal_offset", 0},
          {"softcap", 0.0}, {"layout", "heads"}, {"keep_f32", 0}};
}

int64_t VisibleKeys(const OpCall& call, int64_t query) {
  const int64_t keys = ExtentsOf(call).keys;
  if (call.integer("causal") == 0) return keys;
  return std::clamp<int64_t>(query + call.integer("causal_offset") + 1, 0, keys);
}

double VisiblePairs(const OpCall& call) {
  const int64_t queries = ExtentsOf(call).queries, keys = ExtentsOf(call).keys;
  const auto all = static_cast<double>(keys);
  if (call.integer("causal") == 0) return static_cast<double>(queries) * all;
  // Queries before `some` see nothing, those from `full` on everything; between, one more each.
  const int64_t offset = call.integer("causal_offset");
  const int64_t some = std::clamp<int64_t>(-offset, 0, queries);
  const int64_t full = std::clamp<int64_t>(keys - 1 - offset, some, queries);
  const auto between = static_cast<double>(full - some);
  const auto ends = static_cast<double>(VisibleKeys(call, some) + VisibleKeys(call, full - 1));
  const double partly = full > some ? between * ends / 2 : 0;
  return partly + static_cast<double>(queries - full) * all;
}

std::vector<AttentionIndex> AttentionIndices(const OpCall& call, size_t mask) {
  constexpr int kNone = Factor::kNone, kRank = 4;  // of the scores, to which the mask broadcasts
  const std::string& layout = call.text("layout");
  const auto of_mask = [&](int axis) {
    if (!call.has_input(mask)) return kNone;
    return std::max(axis - (kRank - call.inputs[mask].rank()), kNone);
  };
  const bool packed = layout == "packed", rows = layout == "rows";
  const int head = rows || packed ? 2 : 1;
  const bool shared = !packed && ExtentsOf(call).kv_heads == 1;  // one of k for all of q
  std::vector<AttentionIndex> indices = {{0, packed ? kNone : 0, 0, 0, of_mask(0)}};
  indices.push_back({packed ? 3 : head, packed || shared ? kNone : head, head, 1, of_mask(1)});
  if (!packed && call.integer("causal") == 0)
    indices.push_back({rows ? 1 : 2, kNone, rows ? 1 : 2, 2, of_mask(2)});
  return indices;
}

std::array<int64_t, 4> MaskStrides(const AttentionExtents& e, const Dims& mask) {
  const Dims strides = BroadcastStrides(mask, e.Scores());
  return {strides[0], strides[1], strides[2], strides[3]};
}

AttentionRow::AttentionRow(const OpCall& call, size_t mask_input, std::span<const double* const> in)
    : score(static_cast<size_t>(ExtentsOf(call).keys)),
      slope(score.size()),
      call_(call),
      e_(ExtentsOf(call)),
      views_(ViewsOf(call)),
      q_(in[0]),
      k_(in[views_.k_operand]),
      mask_(nullptr) {
  if (!call.has_input(mask_input)) return;
  mask_ = in[mask_input];
  mask_strides_ = MaskStrides(e_, call.inputs[mask_input].dims);
  mask_is_bool_ = call.inputs[mask_input].dtype == DType::kBool;
}

void AttentionRow::Compute(int64_t b, int64_t h, int64_t i) {
  const double scale = call_.number("scale"), cap = call_.number("softcap");
  const double* q = q_ + views_.q.At(b, h, i);
  const double* mask = nullptr;
  if (mask_ != nullptr)
    mask = mask_ + b * mask_strides_[0] + h * mask_strides_[1] + i * mask_strides_[2];
  const int64_t visible = VisibleKeys(call_, i);
  for (int64_t j = 0; j < e_.keys; ++j) {
    const double* k = k_ + views_.k.At(b, h / e_.group(), j);
    double s = scale * std::inner_product(q, q + e_.head_dim, k, 0.0);
    const double t = cap > 0 ? std::tanh(s / cap) : 0;
    if (cap > 0) s = cap * t;
    slope[static_cast<size_t>(j)] = 1 - t * t;
    const double m = mask == nullptr ? 0 : mask[j * mask_strides_[3]];
    const bool hidden = j >= visible || (mask != nullptr && mask_is_bool_ && m == 0);
    score[static_cast<size_t>(j)] = hidden ? -kInfinity : mask_is_bool_ ? s : s + m;
  }
}

namespace {

// [B,H,T,X] -> [B,Hkv,(H/Hkv)*T,X]: the heads that read one head of k side by side.
Value GroupHeads(Value x, int64_t kv_heads) {
  const Dims d = x.dims();
  return ReshapeExactly(x, {d[0], kv_heads, d[1] / kv_heads * d[2], d[3]});
}

Value Positions(GraphBuilder& b, int64_t count, int64_t first, Dims dims) {
  Tensor tensor({DType::kI64, std::move(dims)});
  std::iota(tensor.as_mutable<int64_t>(), tensor.as_mutable<int64_t>() + count, first);
  return b.Constant(std::move(tensor), "positions");
}

}  // namespace

Status CheckAttentionOperands(const std::string& where, const std::vector<Value>& operands,
                              const AttrMap& attrs) {
  OpCall call;
  call.where = where;
  call.attrs = attrs;
  for (Value v : operands) call.inputs.push_back(v.valid() ? v.type() : OpCall::Absent());
  return InferCall(*FindOp("attention"), call).status();
}

Value MultiplyGrouped(Value probabilities, Value v, bool transpose_v, const AttrMap& of) {
  if (!probabilities.valid() || !v.valid()) return {};
  const Dims p = probabilities.dims();
  const int64_t kv_heads = v.dims()[1];
  const Value product =
      MatMulLike(of, GroupHeads(probabilities, kv_heads), v, /*transpose_a=*/false, transpose_v);
  if (!product.valid()) return {};
  return ReshapeExactly(product, {p[0], p[1], p[2], product.dims()[3]});
}

AttentionScores ComposeAttentionScores(GraphBuilder& b, Value q, Value k, Value mask,
                                       const AttrMap& attrs) {
  AttentionScores scores;
  if (!b.ok()) return scores;
  const double cap = attrs.number("softcap");
  scores.scaled = MultiplyGrouped(q * attrs.number("scale"), k,
                                  /*transpose_v=*/true, attrs);
  scores.capped = scores.masked = scores.scaled;
  if (cap > 0) {
    const Value unit = Tanh(scores.scaled * (1 / cap));
    scores.capped = scores.masked = unit * cap;
  }
  if (!b.ok()) return scores;
  const Value hidden = ScalarLike(scores.capped, -kInfinity);
  if (mask.valid() && mask.dtype() == DType::kBool) {
    scores.masked = Where(mask, scores.masked, hidden);
  } else if (mask.valid()) {
    scores.masked = scores.masked + mask;
  }
  if (attrs.integer("causal") == 0 || !b.ok()) return scores;
  const Dims d = scores.scaled.dims();
  const Value last = Positions(b, d[2], attrs.integer("causal_offset"), {d[2], 1});
  const Value seen = last >= Positions(b, d[3], 0, {1, d[3]});
  scores.masked = Where(seen, scores.masked, hidden);
  return scores;
}

}  // namespace ridge

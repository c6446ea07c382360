// ONNX converters: attention, rotary embedding, causal convolution with state.
//
// Attention becomes our operator of the same name, which never holds the scores whole; where the
// file wants the scores as an output (qk_matmul_output) it is composed from products and softmax.
#include "ridge/onnx/import/converters/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "ridge/graph/ops/shared/attention.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/converter.h"

namespace ridge {

Result<Value> SplitHeads(OnnxNode& n, Value x, int64_t heads, const char* name) {
  RIDGE_RETURN_IF_ERROR(n.status());
  const Dims d = x.dims();
  if (d.size() == 4) return x;
  if (d.size() != 3 || heads <= 0 || d[2] % heads != 0) {
    return n.Error(
        fmt::format("{} is {}; it must have rank 4, or rank 3 and a last extent that {} "
                    "heads divide",
                    name, TypeToString(x.type()), heads));
  }
  const Value split = ReshapeExactly(x, {d[0], d[1], heads, d[2] / heads});
  return Transpose(split, {0, 2, 1, 3});
}

Value MergeHeads(GraphBuilder& b, Value x) {
  if (!b.ok()) return {};
  const Dims d = x.dims();
  return ReshapeExactly(Transpose(x, {0, 2, 1, 3}), {d[0], d[2], d[1] * d[3]});
}

namespace {

enum Input : size_t { kQ, kK, kV, kMask, kPastK, kPastV, kNonPad };
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The node's inputs with heads apart and the past in front of k and v.
struct Inputs {
  Value q, k, v, mask;
  Value present_v;   // v in the file's dtype
  int64_t past = 0;  // positions of k before the node's own
};

Value WithPast(OnnxNode& n, size_t past, Value now) {
  if (!n.has_input(past) || !n.ok()) return now;
  return Concat({n[past], now}, 2);
}

Result<Inputs> ReadInputs(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(3));
  const int64_t q_heads = n.integer("q_num_heads", 0);
  const int64_t kv_heads = n.integer("kv_num_heads", q_heads);
  Inputs o;
  RIDGE_ASSIGN_OR_RETURN(o.q, SplitHeads(n, n[kQ], q_heads, "Q"));
  RIDGE_ASSIGN_OR_RETURN(const Value k, SplitHeads(n, n[kK], kv_heads, "K"));
  RIDGE_ASSIGN_OR_RETURN(const Value v, SplitHeads(n, n[kV], kv_heads, "V"));
  o.k = WithPast(n, kPastK, k);
  o.present_v = WithPast(n, kPastV, v);
  RIDGE_RETURN_IF_ERROR(n.status());
  o.v = Cast(o.present_v, o.q.dtype());
  o.past = o.k.dims()[2] - k.dims()[2];
  return o;
}

// A mask shorter than the keys hides the rest of them.
Value PadMask(OnnxNode& n, Value mask, int64_t keys) {
  if (!n.ok()) return {};
  const TensorType type = mask.type();
  if (type.rank() == 0 || type.dims.back() == 1 || type.dims.back() >= keys) return mask;
  const std::vector<int64_t> before(type.dims.size(), 0);
  std::vector<int64_t> after = before;
  after.back() = keys - type.dims.back();
  const double hidden = type.dtype == DType::kBool ? 0 : -kInfinity;
  return Op("pad", {mask}, {{"before", before}, {"after", after}, {"value", hidden}});
}

// bool[B,1,1,S]: key j of sample b is one of its first nonpad_kv_seqlen[b].
Result<Value> NonPadMask(OnnxNode& n, const Dims& scores) {
  GraphBuilder& b = n.b();
  const Value lengths = n[kNonPad];
  const TensorType type = lengths.type();
  if (type != TensorType{DType::kI64, {scores[0]}}) {
    return n.Error(fmt::format("nonpad_kv_seqlen is {}; it must be i64[{}], one for each sample",
                               TypeToString(type), scores[0]));
  }
  Tensor positions({DType::kI64, {scores[3]}});
  std::iota(positions.as_mutable<int64_t>(), positions.as_mutable<int64_t>() + scores[3], 0);
  const Value column = ReshapeExactly(lengths, {scores[0], 1, 1, 1});
  return column > b.Constant(std::move(positions), "positions");
}

// attn_mask and nonpad_kv_seqlen as one mask; invalid when the node has neither.
Result<Value> ReadMask(OnnxNode& n, const Inputs& o) {
  GraphBuilder& b = n.b();
  const Dims q = o.q.dims(), k = o.k.dims();
  Value mask = n[kMask];
  if (mask.valid()) mask = PadMask(n, mask, k[2]);
  if (mask.valid() && mask.dtype() != DType::kBool) mask = Cast(mask, o.q.dtype());
  if (!n.has_input(kNonPad)) return mask;
  RIDGE_ASSIGN_OR_RETURN(const Value real, NonPadMask(n, {q[0], q[1], q[2], k[2]}));
  if (!mask.valid() || !n.ok()) return real;
  const DType dtype = mask.dtype();
  if (dtype == DType::kBool) return And(mask, real);
  return Where(real, mask, b.Scalar(dtype, -kInfinity));
}

Result<AttrMap> ReadAttributes(OnnxNode& n, const Inputs& o) {
  const int64_t head_dim = std::max<int64_t>(o.q.dims()[3], 1);
  const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
  const int64_t causal = n.integer("is_causal", 0);
  if (causal != 0 && causal != 1) return n.Error(fmt::format("is_causal is {}", causal));
  return AttrMap{{"scale", n.number("scale", scale)},
                 {"causal", causal},
                 {"causal_offset", o.past},
                 {"softcap", std::max(n.number("softcap", 0), 0.0)}};
}

// The dtype that softmax is computed in; our kernels use f32 for anything narrower.
Result<DType> SoftmaxType(OnnxNode& n, DType otherwise) {
  if (!n.has_attr("softmax_precision")) return otherwise;
  const int64_t number = n.integer("softmax_precision", 1);
  const std::optional<DType> dtype = DTypeFromOnnx(static_cast<int>(number));
  if (dtype && IsFloat(*dtype)) return *dtype;
  return n.Error(fmt::format("softmax_precision is {}; it must be a float type", number));
}

// y and the scores at the stage that qk_matmul_output_mode names.
Result<std::vector<Value>> Compose(OnnxNode& n, const Inputs& o, const AttrMap& attrs) {
  GraphBuilder& b = n.b();
  RIDGE_RETURN_IF_ERROR(CheckAttentionOperands(n.where(), {o.q, o.k, o.v, o.mask}, attrs));
  const AttentionScores scores = ComposeAttentionScores(b, o.q, o.k, o.mask, attrs);
  const DType dtype = o.q.dtype();
  RIDGE_ASSIGN_OR_RETURN(const DType precision, SoftmaxType(n, dtype));
  const Value p = Cast(Softmax(Cast(scores.masked, precision)), dtype);
  const Value y = MultiplyGrouped(p, o.v, /*transpose_v=*/false);
  const int64_t mode = n.integer("qk_matmul_output_mode", 0);
  const Value stages[] = {scores.scaled, scores.capped, scores.masked, p};
  if (mode >= 0 && mode <= 3) return std::vector<Value>{y, stages[mode]};
  return n.Error(fmt::format("qk_matmul_output_mode is {}; it must be 0 to 3", mode));
}

}  // namespace

Status ConvertAttention(OnnxNode& n) {
  GraphBuilder& b = n.b();
  RIDGE_ASSIGN_OR_RETURN(Inputs o, ReadInputs(n));
  RIDGE_ASSIGN_OR_RETURN(o.mask, ReadMask(n, o));
  RIDGE_ASSIGN_OR_RETURN(const AttrMap attrs, ReadAttributes(n, o));
  RIDGE_RETURN_IF_ERROR(SoftmaxType(n, DType::kF32).status());
  std::vector<Value> out;
  if (n.wants(3)) {
    RIDGE_ASSIGN_OR_RETURN(out, Compose(n, o, attrs));
  } else {
    out = OpOutputs("attention", {o.q, o.k, o.v, o.mask}, attrs);
  }
  RIDGE_RETURN_IF_ERROR(n.status());
  const bool packed = n[kQ].dims().size() == 3;
  n.Set(0, packed ? MergeHeads(b, out[0]) : out[0]);
  n.Set(1, o.k);
  n.Set(2, o.present_v);
  if (n.wants(3)) n.Set(3, out[1]);
  return n.status();
}

namespace {

constexpr OnnxConverter kConverters[] = {
    {"", "Attention", ConvertAttention},
    {"", "CausalConvWithState", ConvertCausalConvWithState, 2},
    {"", "LinearAttention", ConvertLinearAttention},
    {"", "RotaryEmbedding", ConvertRotaryEmbedding, 3},
    {"ai.onnx.preview", "FlexAttention", ConvertFlexAttention, 3},
};

}  // namespace

std::span<const OnnxConverter> OnnxAttentionConverters() { return kConverters; }

}  // namespace ridge

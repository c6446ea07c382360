// ONNX converters: attention without softmax, and the causal convolution beside it.
//
// LinearAttention keeps a state [B,Hkv,Dk,Dv] that each step decays, corrects and adds k^T v to;
// its steps are unrolled.
#include <fmt/format.h>

#include <cmath>

#include "ridge/graph/ops/shared/attention.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/graph/ops/shared/slice.h"
#include "ridge/onnx/import/converters/attention.h"
#include "ridge/onnx/import/importer.h"

namespace ridge {
namespace {

// Everything in the dtype that the state is kept in; positions are dimension 2.
struct Recurrence {
  Value q, k, v;      // [B,H,T,Dk], [B,Hkv,T,Dk], [B,Hkv,T,Dv]
  Value decay, beta;  // [B,Hkv,T,Dk or 1], [B,Hkv or 1,T,1]; invalid when the rule has none
  Value state;        // [B,Hkv,Dk,Dv]
  double scale = 1;
};

Status CheckRule(OnnxNode& n) {
  const std::string rule = n.text("update_rule", "gated_delta");
  const bool decays = rule == "gated" || rule == "gated_delta";
  const bool corrects = rule == "delta" || rule == "gated_delta";
  if (!decays && !corrects && rule != "linear")
    return n.Error(fmt::format("update_rule is '{}'", rule));
  if (decays == n.has_input(4) && corrects == n.has_input(5)) return Status();
  return n.Error(fmt::format("update_rule '{}' needs {}", rule,
                             rule == "linear" ? "neither decay nor beta"
                             : !corrects      ? "decay and no beta"
                             : decays         ? "decay and beta"
                                              : "beta and no decay"));
}

// Input i [B,T,heads*D] as [B,heads,T,D].
Result<Value> ReadPacked(OnnxNode& n, size_t i, int64_t heads, DType dtype, const char* name) {
  const Value x = n[i];
  if (x.dims().size() == 3) return SplitHeads(n, Cast(x, dtype), heads, name);
  return n.Error(fmt::format("{} is {}; it must have rank 3", name, TypeToString(x.type())));
}

// Heads are what the last extent of decay and beta counts, unless it counts more.
Result<Value> ReadGate(OnnxNode& n, size_t i, int64_t heads, DType dtype, const char* name) {
  if (!n.has_input(i)) return Value();
  const Dims d = n.dims(i);
  const bool one = !d.empty() && d.back() == 1;
  return ReadPacked(n, i, one ? 1 : heads, dtype, name);
}

Result<Value> ReadState(OnnxNode& n, const Dims& dims, DType dtype) {
  GraphBuilder& b = n.b();
  if (!n.has_input(3)) return Expand(b.Scalar(dtype, 0), dims);
  const Value past = n[3];
  if (past.dims() == dims) return Cast(past, dtype);
  return n.Error(fmt::format("past_state is {}; it must be {}", TypeToString(past.type()),
                             DimsToString(dims)));
}

// The operands fit as those of attention do, and the gates broadcast over k.
Status CheckFit(OnnxNode& n, const Recurrence& r) {
  AttrMap attrs = AttentionAttrs();
  attrs["scale"] = r.scale;
  RIDGE_RETURN_IF_ERROR(CheckAttentionOperands(n.where(), {r.q, r.k, r.v}, attrs));
  const Dims q = r.q.dims(), k = r.k.dims();
  if (q[2] != k[2]) return n.Error(fmt::format("query has {} positions, key {}", q[2], k[2]));
  for (Value gate : {r.decay, r.beta}) {
    if (!gate.valid()) continue;
    const Result<Dims> both = BroadcastDims(gate.dims(), k);
    const bool fits = both.ok() && *both == k && gate.dims()[2] == k[2];
    if (!fits) {
      return n.Error(fmt::format("decay or beta is {}; it must broadcast to {}",
                                 DimsToString(gate.dims()), DimsToString(k)));
    }
  }
  return Status();
}

Result<Recurrence> ReadRecurrence(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(3));
  RIDGE_RETURN_IF_ERROR(CheckRule(n));
  const int64_t heads = n.integer("q_num_heads", 0), kv_heads = n.integer("kv_num_heads", 0);
  const DType dtype = n.type(0).dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  Recurrence r;
  RIDGE_ASSIGN_OR_RETURN(r.q, ReadPacked(n, 0, heads, dtype, "query"));
  RIDGE_ASSIGN_OR_RETURN(r.k, ReadPacked(n, 1, kv_heads, dtype, "key"));
  RIDGE_ASSIGN_OR_RETURN(r.v, ReadPacked(n, 2, kv_heads, dtype, "value"));
  RIDGE_ASSIGN_OR_RETURN(r.decay, ReadGate(n, 4, kv_heads, dtype, "decay"));
  RIDGE_ASSIGN_OR_RETURN(r.beta, ReadGate(n, 5, kv_heads, dtype, "beta"));
  RIDGE_RETURN_IF_ERROR(n.status());
  r.scale = n.number("scale", 0);
  const Dims k = r.k.dims(), v = r.v.dims();
  if (r.scale == 0) r.scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(k[3], 1)));
  RIDGE_RETURN_IF_ERROR(CheckFit(n, r));
  RIDGE_ASSIGN_OR_RETURN(r.state, ReadState(n, {k[0], k[1], k[3], v[3]}, dtype));
  return r;
}

// One step; moves the state on and gives y [B,H,1,Dv].
Value Step(Recurrence& r, int64_t t) {
  const auto at = [&](Value x) { return Slice(x, 2, t, t + 1, 1); };
  const Value k = at(r.k);
  Value v = at(r.v);
  if (r.decay.valid())  // [B,Hkv,1,Dk] scales the rows of the state
    r.state = r.state * Transpose(Exp(at(r.decay)), {0, 1, 3, 2});
  if (r.beta.valid()) {
    const Value error = v - MatMul(k, r.state);
    v = at(r.beta) * error;
  }
  r.state = r.state + MatMul(k, v, /*transpose_a=*/true);
  return MultiplyGrouped(at(r.q), r.state, /*transpose_v=*/false);
}

}  // namespace

Status ConvertLinearAttention(OnnxNode& n) {
  GraphBuilder& b = n.b();
  RIDGE_ASSIGN_OR_RETURN(Recurrence r, ReadRecurrence(n));
  RIDGE_RETURN_IF_ERROR(n.status());
  constexpr int64_t kNodesPerStep = 16;
  const int64_t steps = r.q.dims()[2];
  std::vector<Value> ys;
  for (int64_t t = 0; t < steps; ++t) {
    RIDGE_RETURN_IF_ERROR(n.importer().ChargeUnrollBudget(kNodesPerStep));
    ys.push_back(Step(r, t));
    RIDGE_RETURN_IF_ERROR(n.status());
  }
  const Dims q = r.q.dims(), v = r.v.dims();
  Value y =
      steps == 0 ? Expand(ScalarLike(r.q, 0), {q[0], q[1], 0, v[3]}) : Concat(ys, 2) * r.scale;
  n.Set(0, Cast(MergeHeads(b, y), n.type(0).dtype));
  n.Set(1, Cast(r.state, n.type(n.has_input(3) ? 3 : 0).dtype));
  return n.status();
}

namespace {

// The k - 1 positions before x: past_state, or zeros; invalid for k = 1.
Result<Value> ReadPast(OnnxNode& n, const TensorType& x, int64_t width) {
  GraphBuilder& b = n.b();
  const TensorType wanted{x.dtype, {x.dims[0], x.dims[1], width}};
  if (!n.has_input(3)) return width == 0 ? Value() : Expand(b.Scalar(x.dtype, 0), wanted.dims);
  const Value past = n[3];
  if (past.type() == wanted) return width == 0 ? Value() : past;
  return n.Error(fmt::format("past_state is {}; it must be {}", TypeToString(past.type()),
                             TypeToString(wanted)));
}

}  // namespace

Status ConvertCausalConvWithState(OnnxNode& n) {
  const Value x = n[0], weight = n[1], bias = n[2];
  RIDGE_RETURN_IF_ERROR(n.status());
  const TensorType type = x.type(), w = weight.type();
  if (type.rank() != 3 || w.rank() != 3 || w.dims[0] != type.dims[1] || w.dims[2] < 1) {
    return n.Error(
        fmt::format("input is {} and weight {}; they must be [batch, channels, length] "
                    "and [channels, 1, k]",
                    TypeToString(type), TypeToString(w)));
  }
  const std::string activation = n.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return n.Error(fmt::format("activation is '{}'; it must be none, silu or swish", activation));
  const int64_t width = w.dims[2] - 1;
  RIDGE_ASSIGN_OR_RETURN(const Value past, ReadPast(n, type, width));
  const Value padded = past.valid() ? Concat({past, x}, 2) : x;
  Value y = Op("conv", {padded, weight, bias}, {{"groups", type.dims[1]}});
  if (activation != "none") y = Silu(y);
  n.Set(0, y);
  if (!n.wants(1) || !n.ok()) return n.status();
  const int64_t length = padded.dims()[2];
  n.Set(1, Slice(padded, 2, length - width, length, 1));
  return n.status();
}

}  // namespace ridge

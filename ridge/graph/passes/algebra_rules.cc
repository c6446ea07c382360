// Every rule is written as `pattern -> replacement`.  A rule that matches through a node keeps that
// node for other readers; RemoveDead drops it when there are none.
//
// Exactness: rules on shapes are exact.  x + 0 -> x gives -0 where the sum gave 0, and
// (x * a) * b -> x * (a * b) rounds once instead of twice: that is the 1e-5 of the pass.
#include "ridge/graph/passes/algebra_rules.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/graph/pattern.h"

namespace ridge {
namespace {

Rewrite Use(ValueId value) { return {value}; }

Rewrite Call(const char* op, std::vector<ValueId> inputs, AttrMap attrs = {}) {
  return {kNoValue, FindOp(op), std::move(inputs), std::move(attrs)};
}

bool SameType(const RuleCall& call, size_t i) { return call.input_type(i) == call.type; }

// The other input of a binary call when input i is `value` everywhere and dropping it keeps the
// type, else nothing.
Rewrite DropNeutral(const RuleCall& call, size_t i, double value) {
  const std::optional<double> splat = call.Splat(i);
  if (!splat || *splat != value || !SameType(call, 1 - i)) return {};
  return Use(call.inputs[1 - i]);
}

// x * 1 -> x,  1 * x -> x
Rewrite MulOne(const RuleCall& call) {
  const Rewrite right = DropNeutral(call, 1, 1);
  return right.none() ? DropNeutral(call, 0, 1) : right;
}

// x + 0 -> x,  0 + x -> x
Rewrite AddZero(const RuleCall& call) {
  const Rewrite right = DropNeutral(call, 1, 0);
  return right.none() ? DropNeutral(call, 0, 0) : right;
}

// x - 0 -> x
Rewrite SubZero(const RuleCall& call) { return DropNeutral(call, 1, 0); }

// x / 1 -> x
Rewrite DivOne(const RuleCall& call) { return DropNeutral(call, 1, 1); }

// x ^ 1 -> x,  x ^ 2 -> square(x)
Rewrite PowSmall(const RuleCall& call) {
  const std::optional<double> exponent = call.Splat(1);
  if (!exponent || !SameType(call, 0)) return {};
  if (*exponent == 1) return Use(call.inputs[0]);
  if (*exponent == 2 && IsFloat(call.type.dtype)) return Call("square", {call.inputs[0]});
  return {};
}

// (x * a) * b -> x * (a * b), for scalars a, b; not in 16 bits, where a * b would be too coarse
Rewrite MulChain(const RuleCall& call) {
  if (call.type.dtype != DType::kF32 && call.type.dtype != DType::kF64) return {};
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<double> outer = call.Splat(i);
    const Node* inner = call.Producer(1 - i, "mul");
    if (!outer || inner == nullptr) continue;
    RuleCall below{call.graph,    call.rewriter,          *inner->op, inner->attrs,
                   inner->inputs, call.input_type(1 - i), call.name};
    for (size_t k = 0; k < 2; ++k) {
      const std::optional<double> factor = below.Splat(k);
      const ValueId x = inner->inputs[1 - k];
      if (!factor || !(call.graph.type(x) == call.type)) continue;
      Tensor product = Tensor::Scalar(call.type.dtype, *outer * *factor);
      if (!std::isnormal(product.at(0))) continue;  // the factors' product over- or underflows
      const ValueId scale = call.rewriter.AddConstant(call.name + ".scale", std::move(product));
      return Call("mul", {x, scale});
    }
  }
  return {};
}

// neg(neg(x)) -> x, for floats: the smallest integer has no negative
Rewrite NegNeg(const RuleCall& call) {
  if (!IsFloat(call.type.dtype)) return {};
  const Node* inner = call.Producer(0, "neg");
  return inner == nullptr ? Rewrite{} : Use(inner->inputs[0]);
}

// f(f(x)) -> f(x), for f that changes nothing the second time
Rewrite Idempotent(const RuleCall& call) {
  return call.Producer(0, call.op.name) == nullptr ? Rewrite{} : Use(call.inputs[0]);
}

// Whether every value of `from` is also one of `to`.
bool Holds(DType to, DType from) {
  if (to == from) return true;
  if (from == DType::kBool) return IsFloat(to) || IsInteger(to);
  if (IsInteger(from)) {
    const int bits = IntegerBits(from);
    if (to == DType::kF64) return bits <= 32;
    if (to == DType::kF32) return bits <= 16;
    return IsSigned(to) && bits + (IsSigned(from) ? 0 : 1) <= IntegerBits(to);
  }
  if (to == DType::kF64) return true;
  return to == DType::kF32 && (Is16BitFloat(from) || !IsFloat(from));
}

// cast(x, own type) -> x;  cast(cast(x, wider), t) -> cast(x, t)
Rewrite CastRule(const RuleCall& call) {
  if (SameType(call, 0)) return Use(call.inputs[0]);
  const Node* inner = call.Producer(0, "cast");
  if (inner == nullptr) return {};
  const ValueId x = inner->inputs[0];
  if (!Holds(call.input_type(0).dtype, call.graph.type(x).dtype)) return {};
  return Call("cast", {x}, call.attrs);
}

// expand(x, own dims) -> x;  expand(expand(x)) -> expand(x)
Rewrite ExpandRule(const RuleCall& call) {
  if (SameType(call, 0)) return Use(call.inputs[0]);
  const Node* inner = call.Producer(0, "expand");
  return inner == nullptr ? Rewrite{} : Call("expand", {inner->inputs[0]}, call.attrs);
}

// f(x, expand(y)) -> f(x, y), for pointwise f, if x has the shape of the result
Rewrite ExpandIntoPointwise(const RuleCall& call) {
  if (call.op.elementwise == nullptr || call.inputs.size() < 2) return {};
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Node* expand = call.Producer(i, "expand");
    if (expand == nullptr) continue;
    std::vector<ValueId> inputs = call.inputs;
    inputs[i] = expand->inputs[0];
    Dims dims;
    for (ValueId id : inputs) dims = *BroadcastDims(dims, call.graph.type(id).dims);
    if (dims == call.type.dims) return {kNoValue, &call.op, std::move(inputs), call.attrs};
  }
  return {};
}

// An extent 0 means 0 here, it does not copy.
AttrMap ReshapeTo(const Dims& dims) {
  const bool zero = std::find(dims.begin(), dims.end(), 0) != dims.end();
  return {{"dims", dims}, {"allow_zero", int64_t{zero}}};
}

// reshape(x, own dims) -> x;  reshape(reshape(x)) -> reshape(x)
Rewrite ReshapeRule(const RuleCall& call) {
  if (SameType(call, 0)) return Use(call.inputs[0]);
  const Node* inner = call.Producer(0, "reshape");
  if (inner == nullptr) return {};
  return Call("reshape", {inner->inputs[0]}, ReshapeTo(call.type.dims));
}

// An empty list means the reversal.
std::vector<int64_t> Permutation(const std::vector<int64_t>& given, int rank) {
  if (!given.empty()) return given;
  std::vector<int64_t> reversed(static_cast<size_t>(rank));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return reversed;
}

std::vector<int64_t> PermutationOf(const Graph& graph, const Node& transpose) {
  return Permutation(std::get<std::vector<int64_t>>(transpose.attrs.at("permutation")),
                     graph.type(transpose.inputs[0]).rank());
}

// transpose(x, identity) -> x;  transpose(transpose(x)) -> transpose(x, the two in one)
Rewrite TransposeRule(const RuleCall& call) {
  std::vector<int64_t> outer = Permutation(call.attrs.integers("permutation"), call.type.rank());
  if (std::is_sorted(outer.begin(), outer.end())) return Use(call.inputs[0]);
  const Node* inner = call.Producer(0, "transpose");
  if (inner == nullptr) return {};
  const std::vector<int64_t> first = PermutationOf(call.graph, *inner);
  for (int64_t& from : outer) from = first[static_cast<size_t>(from)];
  return Call("transpose", {inner->inputs[0]}, {{"permutation", std::move(outer)}});
}

// reduce(x) -> x or reshape(x), where every reduced extent is 1
Rewrite ReduceOne(const RuleCall& call) {
  if (!IsReduction(call.op)) return {};
  const TensorType& x = call.input_type(0);
  if (x.dtype != call.type.dtype || x.elements() != call.type.elements()) return {};
  if (x == call.type) return Use(call.inputs[0]);
  return Call("reshape", {call.inputs[0]}, ReshapeTo(call.type.dims));
}

bool SwapsLastTwo(const std::vector<int64_t>& permutation) {
  const size_t rank = permutation.size();
  if (rank < 2) return false;
  std::vector<int64_t> swapped(rank);
  std::iota(swapped.begin(), swapped.end(), 0);
  std::swap(swapped[rank - 1], swapped[rank - 2]);
  return permutation == swapped;
}

// matmul(transpose(a), b) -> matmul(a, b, transpose_a=1), and so for b
Rewrite TransposeIntoMatmul(const RuleCall& call) {
  for (size_t i = 0; i < 2; ++i) {
    const Node* transpose = call.Producer(i, "transpose");
    if (transpose == nullptr || !SwapsLastTwo(PermutationOf(call.graph, *transpose))) continue;
    Rewrite rewrite{kNoValue, &call.op, call.inputs, call.attrs};
    rewrite.inputs[i] = transpose->inputs[0];
    int64_t& flag = std::get<int64_t>(rewrite.attrs.at(i == 0 ? "transpose_a" : "transpose_b"));
    flag = flag == 0 ? 1 : 0;
    return rewrite;
  }
  return {};
}

bool AllAre(const std::vector<int64_t>& list, int64_t value) {
  return std::all_of(list.begin(), list.end(), [value](int64_t v) { return v == value; });
}

// slice(x) -> x, where it takes all of x in order
Rewrite SliceAll(const RuleCall& call) {
  return SameType(call, 0) && AllAre(call.attrs.integers("steps"), 1) ? Use(call.inputs[0])
                                                                      : Rewrite{};
}

// pad(x, by nothing) -> x
Rewrite PadNothing(const RuleCall& call) {
  const bool nothing =
      AllAre(call.attrs.integers("before"), 0) && AllAre(call.attrs.integers("after"), 0);
  return nothing && SameType(call, 0) ? Use(call.inputs[0]) : Rewrite{};
}

// concat(x) -> x
Rewrite ConcatOne(const RuleCall& call) {
  return call.inputs.size() == 1 ? Use(call.inputs[0]) : Rewrite{};
}

// scatter_add(i, dy) -> slice_grad(reshape(dy)), for one known index i
Rewrite ScatterOne(const RuleCall& call) {
  const ValueInfo& index = call.graph.value(call.inputs[0]);
  const bool known = index.kind == ValueKind::kConstant && index.constant.elements() == 1;
  if (!known || call.type.elements() == 0) return {};
  int64_t axis = std::get<int64_t>(call.attrs.at("axis"));
  if (axis < 0) axis += call.type.rank();
  Dims row = call.type.dims;
  const double extent = static_cast<double>(row[static_cast<size_t>(axis)]);
  const double given = index.constant.at(0), place = given < 0 ? given + extent : given;
  if (place < 0 || place >= extent) return {};
  row[static_cast<size_t>(axis)] = 1;
  ValueId dy = call.inputs[1];
  if (call.input_type(1).dims != row) {
    const Result<ValueId> shaped = call.rewriter.AddNamedNode(
        *FindOp("reshape"), {dy}, ReshapeTo(row), call.rewriter.FreshName(call.name + ".row"), "");
    if (!shaped.ok()) return {};
    dy = *shaped;
  }
  const auto first = static_cast<int64_t>(place);
  return Call("slice_grad", {dy},
              {{"dims", call.type.dims},
               {"axes", std::vector<int64_t>{axis}},
               {"starts", std::vector<int64_t>{first}},
               {"ends", std::vector<int64_t>{first + 1}}});
}

// dropout(x, rate=0) -> x
Rewrite DropoutNothing(const RuleCall& call) {
  return std::get<double>(call.attrs.at("rate")) == 0 ? Use(call.inputs[0]) : Rewrite{};
}

}  // namespace

const Node* RuleCall::Producer(size_t i, std::string_view op_name) const {
  return i < inputs.size() ? graph.producer(inputs[i], op_name) : nullptr;
}

std::optional<double> RuleCall::Splat(size_t i) const { return SplatOf(graph, inputs[i]); }

const std::vector<Rule>& AlgebraRules() {
  static const std::vector<Rule> rules = {
      {"mul", MulOne},
      {"add", AddZero},
      {"sub", SubZero},
      {"div", DivOne},
      {"pow", PowSmall},
      {"", ExpandIntoPointwise},
      {"mul", MulChain},
      {"neg", NegNeg},
      {"relu", Idempotent},
      {"abs", Idempotent},
      {"sign", Idempotent},
      {"floor", Idempotent},
      {"ceil", Idempotent},
      {"round", Idempotent},
      {"cast", CastRule},
      {"expand", ExpandRule},
      {"reshape", ReshapeRule},
      {"transpose", TransposeRule},
      {"", ReduceOne},
      {"matmul", TransposeIntoMatmul},
      {"slice", SliceAll},
      {"pad", PadNothing},
      {"concat", ConcatOne},
      {"scatter_add", ScatterOne},
      {"dropout", DropoutNothing},
  };
  return rules;
}

}  // namespace ridge

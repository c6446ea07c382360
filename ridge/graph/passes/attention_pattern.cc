// matmul(softmax(cap(matmul(q, k^T) * scale) + mask), v) -> attention(q, k, v, mask)
//
// Exporters write attention as primitive nodes, each in its own way: k already transposed, the root
// of the scale on both q and k, heads of k repeated by expand, masks added or filled in, constant
// masks that are only causal.  One operator never stores the whole scores, forward or backward.
#include <limits>
#include <numeric>

#include "ridge/graph/keep_f32.h"
#include "ridge/graph/passes/attention_match.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/pattern.h"

namespace ridge {
namespace {

class AttentionRewriter {
 public:
  explicit AttentionRewriter(const Graph& graph)
      : graph_(graph), matcher_(graph), rewriter_(graph) {}

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) -> Status {
      const std::optional<AttentionMatch> match = matcher_.Match(node);
      return match ? Replace(node, *match) : rewriter_.Copy(node);
    }));
    RIDGE_ASSIGN_OR_RETURN(const Graph recognized, rewriter_.Finish());
    return RemoveDead(recognized);
  }

 private:
  // Values below are those of the new graph, unless they are called old.
  Status Replace(const Node& root, const AttentionMatch& m);
  Result<ValueId> Add(const char* op, std::vector<ValueId> inputs, AttrMap attrs = {});
  Result<ValueId> Reshape(ValueId x, const Dims& dims);
  Result<ValueId> Scalar(DType dtype, double value);
  Result<ValueId> Transposed(ValueId old);
  Result<ValueId> InFourDims(ValueId x);
  Result<ValueId> BoolMask(const AttentionMatch& m);
  Result<ValueId> FloatMask(const AttentionMatch& m, DType dtype);
  Result<ValueId> Mask(const AttentionMatch& m, DType dtype);
  const Dims& dims(ValueId id) const { return rewriter_.to().type(id).dims; }

  const Graph& graph_;
  AttentionMatcher matcher_;
  GraphRewriter rewriter_;
  std::string name_, location_;  // of the root being replaced
};

// The value before its heads were repeated for the heads of q, when `id` is
// reshape(expand(x [B,Hkv,1,S,D] -> [B,Hkv,G,S,D])); x's dims then are [B,Hkv,S,D].
struct Repeated {
  ValueId source = kNoValue;
  Dims dims;
};

Repeated BeforeRepetition(const Graph& graph, ValueId id) {
  const Dims outer = graph.type(id).dims;
  while (const Node* reshape = graph.producer(id, "reshape")) id = reshape->inputs[0];
  const Node* expand = graph.producer(id, "expand");
  if (expand == nullptr || outer.size() != 4) return {};
  const Dims &to = graph.type(id).dims, &from = graph.type(expand->inputs[0]).dims;
  if (to.size() != 5 || from.size() != 5 || from[2] != 1 || to[1] * to[2] != outer[1]) return {};
  Dims same = to;
  same[2] = 1;
  if (from != same || Dims{to[0], outer[1], to[3], to[4]} != outer) return {};
  return {expand->inputs[0], {from[0], from[1], from[3], from[4]}};
}

// An old value whose last two dimensions, swapped, give `id`, found through reshapes of the others.
ValueId SourceOfTransposed(const Graph& graph, ValueId id) {
  const Dims wanted = graph.type(id).dims;
  const auto tail = [](const Dims& d) { return Dims(d.end() - 2, d.end()); };
  while (const Node* reshape = graph.producer(id, "reshape")) {
    const Dims& from = graph.type(reshape->inputs[0]).dims;
    if (from.size() < 2 || tail(from) != tail(wanted)) return kNoValue;
    id = reshape->inputs[0];
  }
  const Node* transpose = graph.producer(id, "transpose");
  if (transpose == nullptr) return kNoValue;
  const auto& order = std::get<std::vector<int64_t>>(transpose->attrs.at("permutation"));
  std::vector<int64_t> swap(order.size());
  std::iota(swap.begin(), swap.end(), 0);
  std::swap(swap[swap.size() - 1], swap[swap.size() - 2]);
  return order == swap ? transpose->inputs[0] : kNoValue;
}

Dims WithSwappedTail(Dims dims) {
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return dims;
}

Result<ValueId> AttentionRewriter::Add(const char* op, std::vector<ValueId> inputs, AttrMap attrs) {
  return rewriter_.AddNamedNode(*FindOp(op), std::move(inputs), std::move(attrs),
                                rewriter_.FreshName(name_ + "." + op), location_);
}

Result<ValueId> AttentionRewriter::Reshape(ValueId x, const Dims& to) {
  if (dims(x) == to) return x;
  return Add("reshape", {x}, {{"dims", to}, {"allow_zero", int64_t{1}}});
}

Result<ValueId> AttentionRewriter::Scalar(DType dtype, double value) {
  return rewriter_.AddConstant(name_ + ".low", Tensor::Scalar(dtype, value));
}

// Old value [.., D, S] as [.., S, D].
Result<ValueId> AttentionRewriter::Transposed(ValueId old) {
  const Dims wanted = WithSwappedTail(graph_.type(old).dims);
  if (const ValueId source = SourceOfTransposed(graph_, old); source != kNoValue)
    return Reshape(rewriter_.Map(source), wanted);
  std::vector<int64_t> order(wanted.size());
  std::iota(order.begin(), order.end(), 0);
  ValueId from = old;
  if (const Node* transpose = graph_.producer(old, "transpose")) {  // one transpose, not two
    order = std::get<std::vector<int64_t>>(transpose->attrs.at("permutation"));
    from = transpose->inputs[0];
  }
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return Add("transpose", {rewriter_.Map(from)}, {{"permutation", order}});
}

// [N,T,D] as one batch of N heads.
Result<ValueId> AttentionRewriter::InFourDims(ValueId x) {
  Dims four = dims(x);
  if (four.size() == 4) return x;
  four.insert(four.begin(), 1);
  return Reshape(x, four);
}

// All bool masks as one that shows; kNoValue when there is none.
Result<ValueId> AttentionRewriter::BoolMask(const AttentionMatch& m) {
  std::vector<ValueId> parts = rewriter_.Map(m.shown);
  for (ValueId old : m.hidden) {
    RIDGE_ASSIGN_OR_RETURN(const ValueId shown, Add("logical_not", {rewriter_.Map(old)}));
    parts.push_back(shown);
  }
  ValueId all = parts.empty() ? kNoValue : parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    RIDGE_ASSIGN_OR_RETURN(all, Add("logical_and", {all, parts[i]}));
  }
  return all;
}

// All float masks added up; kNoValue when there is none.
Result<ValueId> AttentionRewriter::FloatMask(const AttentionMatch& m, DType dtype) {
  std::vector<ValueId> parts = rewriter_.Map(m.added);
  for (const AttentionFill& fill : m.fills) {
    RIDGE_ASSIGN_OR_RETURN(ValueId shown, Scalar(dtype, 0));
    RIDGE_ASSIGN_OR_RETURN(ValueId hidden, Scalar(dtype, fill.low));
    if (!fill.shows) std::swap(shown, hidden);
    RIDGE_ASSIGN_OR_RETURN(const ValueId part,
                           Add("where", {rewriter_.Map(fill.condition), shown, hidden}));
    parts.push_back(part);
  }
  ValueId sum = parts.empty() ? kNoValue : parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    RIDGE_ASSIGN_OR_RETURN(sum, Add("add", {sum, parts[i]}));
  }
  return sum;
}

Result<ValueId> AttentionRewriter::Mask(const AttentionMatch& m, DType dtype) {
  RIDGE_ASSIGN_OR_RETURN(const ValueId shown, BoolMask(m));
  RIDGE_ASSIGN_OR_RETURN(const ValueId added, FloatMask(m, dtype));
  if (shown == kNoValue) return added;
  if (added == kNoValue) return shown;
  RIDGE_ASSIGN_OR_RETURN(const ValueId hidden,
                         Scalar(dtype, -std::numeric_limits<double>::infinity()));
  return Add("where", {shown, added, hidden});
}

Status AttentionRewriter::Replace(const Node& root, const AttentionMatch& m) {
  const ValueId result = root.outputs[0];
  name_ = graph_.value(result).name;
  location_ = root.location;
  ValueId k = kNoValue, v = rewriter_.Map(m.v);
  if (m.k_transposed) {
    RIDGE_ASSIGN_OR_RETURN(k, Transposed(m.k));
  } else {
    k = rewriter_.Map(m.k);
  }
  // Heads that were repeated are read once; the repetition of k is found in the new graph, where
  // its transposition is gone.
  const Repeated k_source = BeforeRepetition(rewriter_.to(), k);
  const Repeated v_source = BeforeRepetition(rewriter_.to(), v);
  if (k_source.source != kNoValue && v_source.source != kNoValue &&
      k_source.dims[1] == v_source.dims[1]) {
    RIDGE_ASSIGN_OR_RETURN(k, Reshape(k_source.source, k_source.dims));
    RIDGE_ASSIGN_OR_RETURN(v, Reshape(v_source.source, v_source.dims));
  }
  RIDGE_ASSIGN_OR_RETURN(const ValueId q, InFourDims(rewriter_.Map(m.q)));
  RIDGE_ASSIGN_OR_RETURN(k, InFourDims(k));
  RIDGE_ASSIGN_OR_RETURN(v, InFourDims(v));
  RIDGE_ASSIGN_OR_RETURN(const ValueId mask, Mask(m, graph_.type(m.q).dtype));
  std::vector<ValueId> inputs = {q, k, v};
  if (mask != kNoValue) inputs.push_back(mask);
  const AttrMap attrs = {{"scale", m.scale},
                         {"causal", int64_t{m.causal_offset.has_value()}},
                         {"causal_offset", m.causal_offset.value_or(0)},
                         {"softcap", m.softcap},
                         {"keep_f32", int64_t{m.keep_f32 || KeepsF32(root.attrs)}}};
  if (m.scores.size() == 4)
    return rewriter_.Emit(*FindOp("attention"), inputs, attrs, {result}, location_);
  RIDGE_ASSIGN_OR_RETURN(const ValueId y, Add("attention", inputs, attrs));
  const AttrMap back = {{"dims", graph_.type(result).dims}, {"allow_zero", int64_t{1}}};
  return rewriter_.Emit(*FindOp("reshape"), {y}, back, {result}, location_);
}

}  // namespace

Result<Graph> RecognizeAttention(const Graph& graph) { return AttentionRewriter(graph).Run(); }

}  // namespace ridge

// Walks back from the product with v: softmax, masks, soft cap, scale, product of q and k.
//
// A -inf mask gives NaN in a fully masked row; `attention` gives 0 there, as do the guards that
// exporters write (where(isnan(p), 0, p)).  A mask that replaces scores by a finite number matches
// only if adding that number has the same effect, or if no row is fully masked.  A trained mask
// does not match: its gradient needs the whole scores anyway.
#include "ridge/graph/passes/attention_match.h"

#include <algorithm>
#include <cmath>

#include "ridge/graph/keep_f32.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/pattern.h"

namespace ridge {
namespace {

constexpr double kLow = -1e30;    // adding this leaves nothing of a score
constexpr double kHides = -9000;  // exp of this is 0
constexpr int64_t kMostScanned = int64_t{1} << 26;

std::vector<bool> FindTrained(const Graph& graph) {
  std::vector<bool> trained(graph.values().size(), false);
  for (size_t id = 0; id < trained.size(); ++id) {
    const ValueInfo& value = graph.values()[id];
    trained[id] = value.kind == ValueKind::kParameter && value.trainable;
  }
  for (const Node& node : graph.nodes()) {
    bool any = false;
    for (ValueId id : node.inputs)
      any = any || (id != kNoValue && trained[static_cast<size_t>(id)]);
    for (ValueId id : node.outputs)
      trained[static_cast<size_t>(id)] = any && IsFloat(graph.type(id).dtype);
  }
  return trained;
}

bool BroadcastsTo(const Dims& from, const Dims& to) {
  const Result<Dims> both = BroadcastDims(from, to);
  return both.ok() && *both == to;
}

}  // namespace

AttentionMatcher::AttentionMatcher(const Graph& graph)
    : graph_(graph), uses_(graph), trained_(FindTrained(graph)) {}

std::optional<AttentionMatch> AttentionMatcher::Match(const Node& root) {
  if (root.op->name != "matmul" || root.inputs.size() != 2) return std::nullopt;
  const auto flag = [&](const char* name) { return std::get<int64_t>(root.attrs.at(name)) != 0; };
  if (flag("transpose_a") || flag("transpose_b")) return std::nullopt;
  AttentionMatch m;
  m.v = root.inputs[1];
  m.scores = graph_.type(root.inputs[0]).dims;
  ValueId scores = kNoValue;
  if (!ReadProbabilities(root.inputs[0], m, scores)) return std::nullopt;
  if (!ReadMasks(m, scores)) return std::nullopt;
  ReadScale(m.scale, scores, &m.inner);
  ReadSoftcap(m, scores);
  if (!ReadProduct(m, scores) || !uses_.AreReadOnlyWithin(m.inner, root)) return std::nullopt;
  return m;
}

// softmax(scores), or where(p != p, 0, p) around it.
bool AttentionMatcher::ReadProbabilities(ValueId p, AttentionMatch& m, ValueId& scores) const {
  m.inner.push_back(p);
  if (const Node* guard = graph_.producer(p, "where")) {
    const Node* nan = graph_.producer(guard->inputs[0], "not_equal");
    p = guard->inputs[2];
    if (nan == nullptr || nan->inputs[0] != p || nan->inputs[1] != p) return false;
    if (SplatOf(graph_, guard->inputs[1]) != 0.0) return false;
    m.inner.push_back(guard->inputs[0]);
    m.inner.push_back(p);
  }
  const Node* softmax = graph_.producer(p, "softmax");
  if (softmax == nullptr || graph_.type(p).dims != m.scores) return false;
  const int64_t axis = std::get<int64_t>(softmax->attrs.at("axis"));
  if (axis != -1 && axis != graph_.type(p).rank() - 1) return false;
  scores = softmax->inputs[0];
  m.inner.push_back(scores);
  return true;
}

// add(scores, mask), where(condition, mask, scores) or where(condition, scores, mask), any number.
bool AttentionMatcher::ReadMasks(AttentionMatch& m, ValueId& scores) {
  for (;;) {
    if (const Node* add = graph_.producer(scores, "add")) {
      if (!ReadAdd(*add, m, scores)) return false;
    } else if (const Node* where = graph_.producer(scores, "where")) {
      if (!ReadWhere(*where, m, scores)) return false;
    } else {
      return graph_.type(scores).dims == m.scores;
    }
    m.inner.push_back(scores);
  }
}

bool AttentionMatcher::ReadAdd(const Node& add, AttentionMatch& m, ValueId& scores) {
  for (size_t i = 0; i < 2; ++i) {
    const bool full = graph_.type(add.inputs[i]).dims == m.scores;
    if (!full || !LeadsToProduct(add.inputs[i])) continue;
    scores = add.inputs[i];
    return AddMask(add.inputs[1 - i], m);
  }
  return false;
}

bool AttentionMatcher::ReadWhere(const Node& where, AttentionMatch& m, ValueId& scores) {
  for (size_t i = 1; i <= 2; ++i) {  // where the scores are
    const std::optional<double> low = SplatOf(graph_, where.inputs[3 - i]);
    if (!low || !(*low <= kHides) || graph_.type(where.inputs[i]).dims != m.scores) continue;
    const bool shows = i == 1, safe = ReadConstant(where.inputs[0], !shows).rows_see;
    if (!safe && !std::isinf(*low) && *low > kLow) return false;
    scores = where.inputs[i];
    if (safe || std::isinf(*low)) return AddBool(where.inputs[0], shows, m);
    // The result of a fully masked row is the mean of v: adding `low` preserves that.
    m.fills.push_back({where.inputs[0], shows, *low});
    return BroadcastsTo(graph_.type(where.inputs[0]).dims, m.scores);
  }
  return false;
}

// Through masks, scales and the soft cap, a product.
bool AttentionMatcher::LeadsToProduct(ValueId id) const {
  constexpr int kMostSteps = 12;
  for (int step = 0; step < kMostSteps; ++step) {
    const Node* node = graph_.producer(id);
    if (node == nullptr) return false;
    const std::string& op = node->op->name;
    if (op == "matmul") return true;
    if (op != "add" && op != "where" && op != "mul" && op != "div" && op != "tanh") return false;
    const Dims& dims = graph_.type(id).dims;
    ValueId next = kNoValue;
    for (ValueId input : node->inputs) {
      const bool made = graph_.producer(input) != nullptr;
      if (made && next == kNoValue && IsFloat(graph_.type(input).dtype) &&
          graph_.type(input).dims == dims)
        next = input;
    }
    if (next == kNoValue) return false;
    id = next;
  }
  return false;
}

bool AttentionMatcher::AddMask(ValueId mask, AttentionMatch& m) {
  if (!BroadcastsTo(graph_.type(mask).dims, m.scores)) return false;
  if (trained_[static_cast<size_t>(mask)]) return false;
  const ConstantMask& constant = ReadConstant(mask, true);
  if (constant.known && constant.empty) return true;
  if (constant.known && !m.causal_offset) {
    m.causal_offset = constant.offset;
    return true;
  }
  if (const Node* where = graph_.producer(mask, "where")) {  // 0 here, -inf there
    for (size_t i = 1; i <= 2; ++i) {
      const std::optional<double> zero = SplatOf(graph_, where->inputs[i]);
      const std::optional<double> low = SplatOf(graph_, where->inputs[3 - i]);
      if (zero == 0.0 && low && std::isinf(*low) && *low < 0)
        return AddBool(where->inputs[0], /*shows=*/i == 1, m);
    }
  }
  m.added.push_back(mask);
  return true;
}

bool AttentionMatcher::AddBool(ValueId condition, bool shows, AttentionMatch& m) {
  if (!BroadcastsTo(graph_.type(condition).dims, m.scores)) return false;
  const ConstantMask& constant = ReadConstant(condition, !shows);
  if (constant.known && constant.empty) return true;
  if (constant.known && !m.causal_offset) {
    m.causal_offset = constant.offset;
    return true;
  }
  (shows ? m.shown : m.hidden).push_back(condition);
  return true;
}

// value = x * c or x / c
void AttentionMatcher::ReadScale(double& scale, ValueId& value, std::vector<ValueId>* inner) const {
  for (;;) {
    const Node* node = graph_.producer(value);
    if (node == nullptr || (node->op->name != "mul" && node->op->name != "div")) return;
    const bool divides = node->op->name == "div";
    std::optional<double> factor = SplatOf(graph_, node->inputs[1]);
    ValueId x = node->inputs[0];
    if (!factor && !divides) {
      factor = SplatOf(graph_, node->inputs[0]);
      x = node->inputs[1];
    }
    if (!factor || !std::isfinite(*factor) || (divides && *factor == 0)) return;
    if (graph_.type(x).dims != graph_.type(value).dims) return;
    scale *= divides ? 1 / *factor : *factor;
    value = x;
    if (inner != nullptr) inner->push_back(x);
  }
}

// cap * tanh(x * c): what was read as scale is the cap.
void AttentionMatcher::ReadSoftcap(AttentionMatch& m, ValueId& scores) const {
  const Node* tanh = graph_.producer(scores, "tanh");
  if (tanh == nullptr || !(m.scale > 0)) return;
  m.softcap = m.scale;
  scores = tanh->inputs[0];
  m.inner.push_back(scores);
  ReadScale(m.scale, scores, &m.inner);  // cap * (c1 c2 ..): the scale before the cap
}

bool AttentionMatcher::ReadProduct(AttentionMatch& m, ValueId scores) const {
  const Node* product = graph_.producer(scores, "matmul");
  if (product == nullptr || product->inputs.size() != 2) return false;
  if (std::get<int64_t>(product->attrs.at("transpose_a")) != 0) return false;
  m.k_transposed = std::get<int64_t>(product->attrs.at("transpose_b")) == 0;
  m.keep_f32 = m.keep_f32 || KeepsF32(product->attrs);
  m.q = product->inputs[0];
  m.k = product->inputs[1];
  ReadScale(m.scale, m.q, nullptr);
  ReadScale(m.scale, m.k, nullptr);
  const TensorType &q = graph_.type(m.q), &k = graph_.type(m.k), &v = graph_.type(m.v);
  // In 16 bits the nodes round scores and probabilities, which the operator does not.
  if (q.dtype != DType::kF32 && q.dtype != DType::kF64) return false;
  const auto leading = [](const Dims& d) { return Dims(d.begin(), d.end() - 2); };
  const bool ranks = q.rank() == 3 || q.rank() == 4;
  if (!ranks || k.rank() != q.rank() || v.rank() != q.rank()) return false;
  const bool empty = q.elements() == 0 || k.elements() == 0 || v.elements() == 0;
  return !empty && leading(q.dims) == leading(k.dims) && leading(q.dims) == leading(v.dims);
}

namespace {

// One [T,S] of a mask: whether element (i, j) hides.
struct MaskSlice {
  const Tensor& tensor;
  int64_t base, queries, keys;
  bool hides;

  // 1 hides, 0 does not, -1: a float mask that does something else.
  int Hides(int64_t i, int64_t j) const {
    const double value = tensor.at(base + i * keys + j);
    if (tensor.type().dtype == DType::kBool) return (value != 0) == hides ? 1 : 0;
    return value == 0 ? 0 : value <= kLow ? 1 : -1;
  }
  int64_t FirstRow() const {  // keys in front that query 0 sees
    int64_t seen = 0;
    while (seen < keys && Hides(0, seen) == 0) ++seen;
    return seen;
  }
  // Key j hides from query i exactly when j >= seen + i.
  bool IsCausal(int64_t seen) const {
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t j = 0; j < keys; ++j) {
        if (Hides(i, j) != (j >= seen + i ? 1 : 0)) return false;
      }
    }
    return true;
  }
  bool IsEmpty() const {
    for (int64_t k = 0; k < queries * keys; ++k) {
      if (Hides(0, k) != 0) return false;
    }
    return true;
  }
  bool EachRowSees() const {
    for (int64_t i = 0; i < queries; ++i) {
      bool any = false;
      for (int64_t j = 0; j < keys && !any; ++j) any = Hides(i, j) == 0;
      if (!any) return false;
    }
    return true;
  }
};

}  // namespace

const AttentionMatcher::ConstantMask& AttentionMatcher::ReadConstant(ValueId id, bool hides) {
  const auto [known, fresh] = constants_.emplace(std::pair{id, hides}, ConstantMask{});
  ConstantMask& mask = known->second;
  if (!fresh) return mask;
  if (const Node* expand = graph_.producer(id, "expand")) id = expand->inputs[0];
  const ValueInfo& value = graph_.value(id);
  if (value.kind != ValueKind::kConstant) return mask;
  const Dims& dims = value.type.dims;
  const int64_t elements = value.constant.elements();
  if (elements == 0 || elements > kMostScanned) return mask;
  const int64_t keys = dims.empty() ? 1 : dims.back();
  const int64_t queries = dims.size() < 2 ? 1 : dims[dims.size() - 2];
  const MaskSlice first{value.constant, 0, queries, keys, hides};
  const int64_t seen = first.FirstRow();
  mask = {.known = true, .empty = true, .rows_see = true, .offset = seen - 1};
  bool causal = seen > 0 && queries > 1;
  for (int64_t base = 0; base < elements; base += queries * keys) {
    const MaskSlice slice{value.constant, base, queries, keys, hides};
    mask.empty = mask.empty && slice.IsEmpty();
    causal = causal && slice.IsCausal(seen);
    mask.rows_see = mask.rows_see && slice.EachRowSees();
  }
  mask.known = mask.empty || causal;
  return mask;
}

}  // namespace ridge

// Inputs of RNN, GRU and LSTM, read and checked; the walk over their steps; outputs put together.
#include <fmt/format.h>

#include <numeric>

#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/graph/ops/shared/slice.h"
#include "ridge/onnx/import/converters/recurrent.h"
#include "ridge/onnx/import/importer.h"

namespace ridge {
namespace {

// x[i] of the first dimension.
Value TakeRow(GraphBuilder& b, Value x, int64_t i) {
  if (!b.ok()) return {};
  Dims rest = x.dims();
  if (rest[0] != 1) x = Slice(x, 0, i, i + 1, 1);
  rest.erase(rest.begin());
  return ReshapeExactly(x, rest);
}

// Input i, which must be absent or have these dims and the dtype of X.
Result<Value> ReadShaped(OnnxNode& n, size_t i, const Dims& dims, const char* name) {
  const Value x = n[i];
  if (!x.valid() || (x.dims() == dims && x.dtype() == n.type(0).dtype)) return x;
  return n.Error(fmt::format("{} is {}; it must be {}", name, TypeToString(x.type()),
                             TypeToString({n.type(0).dtype, dims})));
}

// A state [directions, batch, hidden], or [batch, directions, hidden] when batch is first.
Result<Value> ReadState(OnnxNode& n, size_t i, const RecurrentNode& node, const char* name) {
  const RecurrentExtents& e = node.e;
  const Dims dims = node.batch_first ? Dims{e.batch, e.directions, e.hidden}
                                     : Dims{e.directions, e.batch, e.hidden};
  RIDGE_ASSIGN_OR_RETURN(const Value x, ReadShaped(n, i, dims, name));
  GraphBuilder& b = n.b();
  if (!x.valid()) return Expand(b.Scalar(n.type(0).dtype, 0), {e.directions, e.batch, e.hidden});
  return node.batch_first ? Transpose(x, {1, 0, 2}) : x;
}

Status ReadExtents(OnnxNode& n, const RecurrentCell& cell, RecurrentNode& node) {
  RIDGE_RETURN_IF_ERROR(n.Need(3));
  const TensorType x = n.type(0), w = n.type(1), r = n.type(2);
  if (x.rank() != 3 || w.rank() != 3 || r.rank() != 3 || !IsFloat(x.dtype)) {
    return n.Error(fmt::format("X is {}, W {}, R {}; they must be floats of rank 3",
                               TypeToString(x), TypeToString(w), TypeToString(r)));
  }
  node.batch_first = n.integer("layout", 0) != 0;
  const bool both = n.text("direction", "forward") == "bidirectional";
  node.e = {.seq_len = x.dims[node.batch_first ? 1 : 0],
            .batch = x.dims[node.batch_first ? 0 : 1],
            .input = x.dims[2],
            .hidden = r.dims[2],
            .blocks = cell.blocks(),
            .directions = both ? 2 : 1};
  const int64_t hidden = n.integer("hidden_size", node.e.hidden);
  if (hidden == node.e.hidden) return Status();
  return n.Error(fmt::format("hidden_size is {}, R has {}", hidden, node.e.hidden));
}

// Whether the activation reads alpha and beta, and what they are when the node has none.
struct ActivationInfo {
  const char* name;
  bool has_alpha, has_beta;
  double alpha, beta;
};
constexpr ActivationInfo kActivations[] = {
    {"Affine", true, true, 1, 0},           {"Elu", true, false, 1, 0},
    {"HardSigmoid", true, true, 0.2, 0.5},  {"LeakyRelu", true, false, 0.01, 0},
    {"Relu", false, false, 0, 0},           {"ScaledTanh", true, true, 1, 1},
    {"Sigmoid", false, false, 0, 0},        {"Softplus", false, false, 0, 0},
    {"Softsign", false, false, 0, 0},       {"Tanh", false, false, 0, 0},
    {"ThresholdedRelu", true, false, 1, 0},
};

bool SameWord(const std::string& a, const std::string& b) {  // whatever the case
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) ==
                  std::tolower(static_cast<unsigned char>(y));
         });
}

// Activations of all directions; alpha and beta are used up by those that read them, in order.
Result<std::vector<RecurrentActivation>> ReadActivations(OnnxNode& n, size_t count,
                                                         std::vector<std::string> names) {
  const std::vector<double> alphas = n.numbers("activation_alpha");
  const std::vector<double> betas = n.numbers("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  std::vector<RecurrentActivation> all;
  for (const std::string& name : names) {
    const auto* info = std::find_if(std::begin(kActivations), std::end(kActivations),
                                    [&](const auto& a) { return SameWord(name, a.name); });
    if (info == std::end(kActivations))
      return n.Unsupported(fmt::format("activation '{}' is not known", name));
    RecurrentActivation a{info->name, info->alpha, info->beta};
    if (info->has_alpha && next_alpha < alphas.size()) a.alpha = alphas[next_alpha++];
    if (info->has_beta && next_beta < betas.size()) a.beta = betas[next_beta++];
    all.push_back(std::move(a));
  }
  if (all.size() == count) return all;
  return n.Error(fmt::format("has {} activations; it must have {}", all.size(), count));
}

// i64[batch, 1]; invalid when no sequence is shorter than seq_len.
Result<Value> ReadLengths(OnnxNode& n, const RecurrentExtents& e) {
  const Value lengths = n[4];
  RIDGE_RETURN_IF_ERROR(n.status());
  if (!lengths.valid()) return Value();
  const TensorType type = lengths.type();
  if (type.dims != Dims{e.batch} || IsFloat(type.dtype)) {
    return n.Error(
        fmt::format("sequence_lens is {}; it must be i32[{}]", TypeToString(type), e.batch));
  }
  const Tensor* known = n.ConstantInput(4);
  bool all_full = known != nullptr;
  for (int64_t i = 0; all_full && i < known->elements(); ++i)
    all_full = known->at(i) >= static_cast<double>(e.seq_len);
  if (all_full) return Value();
  return ReshapeExactly(Cast(lengths, DType::kI64), {e.batch, 1});
}

// What all directions read, still together.
struct Together {
  Value w, r, bias, h, c, peepholes, lengths;
  std::vector<RecurrentActivation> activations;
};

Result<Together> ReadTogether(OnnxNode& n, const RecurrentNode& node, const RecurrentCell& cell) {
  const RecurrentExtents& e = node.e;
  const int64_t rows = e.blocks * e.hidden;
  Together t;
  RIDGE_ASSIGN_OR_RETURN(t.w, ReadShaped(n, 1, {e.directions, rows, e.input}, "W"));
  RIDGE_ASSIGN_OR_RETURN(t.r, ReadShaped(n, 2, {e.directions, rows, e.hidden}, "R"));
  RIDGE_ASSIGN_OR_RETURN(t.bias, ReadShaped(n, 3, {e.directions, 2 * rows}, "B"));
  RIDGE_ASSIGN_OR_RETURN(t.lengths, ReadLengths(n, e));
  RIDGE_ASSIGN_OR_RETURN(t.h, ReadState(n, 5, node, "initial_h"));
  if (cell.has_cells()) {
    RIDGE_ASSIGN_OR_RETURN(t.c, ReadState(n, 6, node, "initial_c"));
    RIDGE_ASSIGN_OR_RETURN(t.peepholes, ReadShaped(n, 7, {e.directions, 3 * e.hidden}, "P"));
  }
  const std::span<const char* const> defaults = cell.onnx_activations;
  std::vector<std::string> names = n.texts("activations");
  for (int64_t d = 0; !n.has_attr("activations") && d < e.directions; ++d)
    names.insert(names.end(), defaults.begin(), defaults.end());
  const size_t count = defaults.size() * static_cast<size_t>(e.directions);
  RIDGE_ASSIGN_OR_RETURN(t.activations, ReadActivations(n, count, std::move(names)));
  return t;
}

RecurrentDirection DirectionOf(OnnxNode& n, const RecurrentNode& node, const Together& t,
                               int64_t i) {
  GraphBuilder& b = n.b();
  const auto row = [&](Value x) { return x.valid() ? TakeRow(b, x, i) : Value(); };
  RecurrentDirection d;
  d.e = node.e;
  d.reverse = i == 1 || n.text("direction", "forward") == "reverse";
  d.w = row(t.w);
  d.r = row(t.r);
  if (t.bias.valid()) {
    const Value both = row(t.bias);
    d.wb = TakeBlocks(both, 0, 0, node.e.blocks, node.e.hidden);
    d.rb = TakeBlocks(both, 0, node.e.blocks, 2 * node.e.blocks, node.e.hidden);
  }
  d.h = row(t.h);
  d.c = row(t.c);
  d.peepholes = row(t.peepholes);
  d.lengths = t.lengths;
  d.clip = std::max(n.number("clip", 0), 0.0);
  d.linear_before_reset = n.integer("linear_before_reset", 0) != 0;
  d.input_forget = n.integer("input_forget", 0) != 0;
  const size_t each = t.activations.size() / static_cast<size_t>(node.e.directions);
  const auto first = t.activations.begin() + static_cast<int64_t>(each) * i;
  d.activations.assign(first, first + static_cast<int64_t>(each));
  return d;
}

}  // namespace

Result<RecurrentNode> ReadRecurrent(OnnxNode& n, const RecurrentCell& cell) {
  RecurrentNode node;
  RIDGE_RETURN_IF_ERROR(ReadExtents(n, cell, node));
  const std::string direction = n.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return n.Error(fmt::format("direction is '{}'", direction));
  RIDGE_ASSIGN_OR_RETURN(const Together t, ReadTogether(n, node, cell));
  RIDGE_RETURN_IF_ERROR(n.status());
  node.x = node.batch_first ? Transpose(n[0], {1, 0, 2}) : n[0];
  for (int64_t i = 0; i < node.e.directions; ++i)
    node.directions.push_back(DirectionOf(n, node, t, i));
  RIDGE_RETURN_IF_ERROR(n.status());
  return node;
}

Value TakeBlocks(Value x, int axis, int64_t first, int64_t last, int64_t hidden) {
  return Slice(x, axis, first * hidden, last * hidden, 1);
}

bool IsPlain(const RecurrentDirection& d, std::span<const char* const> activations) {
  const auto same = [](const RecurrentActivation& a, const char* name) { return a.name == name; };
  constexpr int64_t kMostCounted = 65536;  // a constant numbers the steps
  const bool whole = !d.lengths.valid() || (!d.reverse && d.e.seq_len <= kMostCounted);
  return whole && !d.peepholes.valid() && d.clip == 0 &&
         std::equal(d.activations.begin(), d.activations.end(), activations.begin(),
                    activations.end(), same);
}

namespace {

Value Zero(Value like) { return ScalarLike(like, 0); }

Value StepOf(GraphBuilder& b, Value steps, int64_t t) {
  if (!b.ok()) return {};
  const Dims d = steps.dims();
  return ReshapeExactly(Slice(steps, 0, t, t + 1, 1), {d[1], d[2]});
}

// i64[seq_len, 1, 1]: 1, 2, ..
Value StepCounts(GraphBuilder& b, int64_t seq_len) {
  Tensor counts({DType::kI64, {seq_len, 1, 1}});
  std::iota(counts.as_mutable<int64_t>(), counts.as_mutable<int64_t>() + seq_len, 1);
  return b.Constant(std::move(counts), "steps");
}

// The state after the last step of `states` [seq_len, batch, hidden]; `first` when there is none.
Value LastState(GraphBuilder& b, const RecurrentDirection& d, Value states, Value first) {
  const int64_t steps = d.e.seq_len;
  if (!b.ok() || steps == 0) return first;
  if (!d.lengths.valid()) return StepOf(b, states, d.reverse ? 0 : steps - 1);
  // A sum in which one step is not 0.
  const Value most = b.Scalar(DType::kI64, static_cast<double>(steps));
  const Value count = Minimum(d.lengths, most);
  const Value is_last = Equal(StepCounts(b, steps), count);
  const Value last = Sum(Where(is_last, states, Zero(states)), {0});
  const Value runs = d.lengths > b.Scalar(DType::kI64, 0);
  return Where(runs, last, first);
}

// `states` with zeros where a sequence is over.
Value ZeroWhereOver(GraphBuilder& b, const RecurrentDirection& d, Value states) {
  if (!b.ok() || !d.lengths.valid() || d.e.seq_len == 0) return states;
  const Value runs = d.lengths >= StepCounts(b, d.e.seq_len);
  return Where(runs, states, Zero(states));
}

// `fresh`, or where the sequence is over before step t `kept`; zeros where that is invalid.
Value KeepWhereOver(GraphBuilder& b, const RecurrentDirection& d, int64_t t, Value fresh,
                    Value kept) {
  if (!d.lengths.valid() || !b.ok()) return fresh;
  const Value runs = d.lengths > b.Scalar(DType::kI64, static_cast<double>(t));
  return Where(runs, fresh, kept.valid() ? kept : Zero(fresh));
}

// [n, hidden] each -> [how many, n, hidden]
Value Stack(GraphBuilder& b, const std::vector<Value>& each) {
  if (!b.ok()) return {};
  std::vector<Value> rows;
  for (Value row : each) {
    const Dims d = row.dims();
    rows.push_back(ReshapeExactly(row, {1, d[0], d[1]}));
  }
  return rows.size() == 1 ? rows[0] : Concat(rows, 0);
}

}  // namespace

RecurrentStates StatesOf(GraphBuilder& b, const RecurrentDirection& d, Value y, Value cells) {
  return {.y = ZeroWhereOver(b, d, y),
          .last_h = LastState(b, d, y, d.h),
          .last_c = cells.valid() ? LastState(b, d, cells, d.c) : Value()};
}

Result<RecurrentStates> WalkSteps(OnnxNode& n, Value projected, const RecurrentDirection& d,
                                  const RecurrentStep& step) {
  constexpr int64_t kNodesPerStep = 12;
  GraphBuilder& b = n.b();
  RIDGE_RETURN_IF_ERROR(n.importer().ChargeUnrollBudget(kNodesPerStep * d.e.seq_len));
  std::vector<Value> ys(static_cast<size_t>(d.e.seq_len));
  StepStates now{d.h, d.c};
  for (int64_t i = 0; i < d.e.seq_len; ++i) {
    const int64_t t = d.reverse ? d.e.seq_len - 1 - i : i;
    const StepStates next = step(StepOf(b, projected, t), now);
    ys[static_cast<size_t>(t)] = KeepWhereOver(b, d, t, next.h, Value());
    now.h = KeepWhereOver(b, d, t, next.h, now.h);
    if (now.c.valid()) now.c = KeepWhereOver(b, d, t, next.c, now.c);
    RIDGE_RETURN_IF_ERROR(n.status());
  }
  return RecurrentStates{Stack(b, ys), now.h, now.c};
}

namespace {

// One a direction [batch, hidden] -> [directions, batch, hidden], or with batch first.
Value StackDirections(GraphBuilder& b, const std::vector<Value>& each, bool batch_first) {
  const Value stacked = Stack(b, each);
  return batch_first ? Transpose(stacked, {1, 0, 2}) : stacked;
}

// One a direction [seq_len, batch, hidden] -> [seq_len, directions, batch, hidden], or [batch,
// seq_len, directions, hidden].
Value StackOutputs(const RecurrentNode& node, const std::vector<Value>& each) {
  const RecurrentExtents& e = node.e;
  std::vector<Value> parts;
  for (Value y : each) parts.push_back(ReshapeExactly(y, {e.seq_len, 1, e.batch, e.hidden}));
  const Value y = parts.size() == 1 ? parts[0] : Concat(parts, 1);
  return node.batch_first ? Transpose(y, {2, 0, 1, 3}) : y;
}

}  // namespace

Status SetRecurrentOutputs(OnnxNode& n, const RecurrentNode& node,
                           const std::vector<RecurrentStates>& states) {
  RIDGE_RETURN_IF_ERROR(n.status());
  GraphBuilder& b = n.b();
  std::vector<Value> ys, hs, cs;
  for (const RecurrentStates& s : states) {
    ys.push_back(s.y);
    hs.push_back(s.last_h);
    cs.push_back(s.last_c);
  }
  if (n.wants(0)) n.Set(0, StackOutputs(node, ys));
  if (n.wants(1)) n.Set(1, StackDirections(b, hs, node.batch_first));
  if (n.wants(2) && cs[0].valid()) n.Set(2, StackDirections(b, cs, node.batch_first));
  return n.status();
}

}  // namespace ridge

#include "tests/generate/sketch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/graph/interpret.h"
#include "ridge/learn/training_graph.h"
#include "tests/generate/leaves.h"

namespace ridge {
namespace {

constexpr double kLargest = 40;         // of a number, so that f16 holds sums of them
constexpr int64_t kMostElements = 600;  // of a value: graphs run many times
constexpr int64_t kMostFlops = 20'000;  // of a node

bool Moderate(const Tensor& tensor, double most) {
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double x = tensor.at(i);
    if (std::isnan(x) || std::abs(x) > most) return false;
  }
  return true;
}

Tensor RandomTensor(Dice& dice, TensorType type, double low, double high) {
  Tensor tensor(std::move(type));
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double number =
        IsFloat(tensor.type().dtype)
            ? std::round(dice.Between(low, high) * 64) / 64
            : static_cast<double>(dice.From(static_cast<int64_t>(low), static_cast<int64_t>(high)));
    StoreFromDouble(tensor.type().dtype, tensor.mutable_data(), i, number);
  }
  return tensor;
}

}  // namespace

Value Sketch::Learn(Value leaf) {
  if (!leaf.valid()) return leaf;
  numbers_.resize(b_.graph().values().size());
  read_.resize(b_.graph().values().size());
  const ValueInfo& info = b_.graph().value(leaf.id);
  numbers_[static_cast<size_t>(leaf.id)] =
      info.kind == ValueKind::kConstant ? info.constant : LeafNumbers(info);
  return leaf;
}

Value Sketch::Input(Dims rest) {
  rest.insert(rest.begin(), batch_);
  return Learn(b_.Input("x", {DType::kF64, std::move(rest)}));
}

Value Sketch::Parameter(const Dims& dims, double bound) {
  for (Value known : parameters_) {
    if (this->dims(known) == dims && dice.Percent(40)) return known;
  }
  if (ElementCount(dims) > kMostElements) return {};
  const Value made = Learn(b_.Parameter("w", {DType::kF64, dims}, Init::Uniform(bound)));
  if (dice.Percent(10)) b_.graph().mutable_value(made.id).trainable = false;
  parameters_.push_back(made);
  return made;
}

Value Sketch::Frozen(const Dims& dims, double bound) {
  const Value made = Learn(b_.Parameter("c", {DType::kF64, dims}, Init::Uniform(bound)));
  b_.graph().mutable_value(made.id).trainable = false;
  return made;
}

Value Sketch::Statistic(const Dims& dims, double low, double high) {
  if (ElementCount(dims) > kMostElements) return {};
  const TensorType type{DType::kF64, dims};
  return Learn(b_.State("s", type, Init::FromTensor(RandomTensor(dice, type, low, high)),
                        ValueRole::kStatistic));
}

Value Sketch::Integers(const Dims& dims, int64_t low, int64_t high) {
  if (ElementCount(dims) > kMostElements) return {};
  const TensorType type{DType::kI64, dims};
  const Tensor drawn =
      RandomTensor(dice, type, static_cast<double>(low), static_cast<double>(high));
  return Learn(b_.State("i", type, Init::FromTensor(drawn), ValueRole::kNone));
}

Value Sketch::Labels(const Dims& rest, int64_t classes) {
  Dims dims = rest;
  dims.insert(dims.begin(), batch_);
  return Learn(b_.Input(fmt::format("label.below{}", classes), {DType::kI64, dims}));
}

Value Sketch::Rng() {
  if (!rng_.valid()) rng_ = Learn(b_.Input(kRngInput, {DType::kI64, {3}}));
  return rng_;
}

Value Sketch::Scalar(double number) { return Learn(b_.Scalar(DType::kF64, number)); }

Value Sketch::Constant(Tensor tensor) { return Learn(b_.Constant(std::move(tensor))); }

std::vector<Value> Sketch::AddNode(const char* op, const std::vector<Value>& inputs, AttrMap attrs,
                                   double most) {
  const OpDef* def = FindOp(op);
  RIDGE_CHECK(def != nullptr, op);
  const std::vector<Value> none(def->output_names.size());
  OpCall call;
  call.attrs = attrs;
  std::vector<Tensor> tensors;
  std::vector<Value> given = inputs;
  while (!given.empty() && given.back().id == kAbsent) given.pop_back();
  for (Value& v : given) {
    if (v.id == kNoValue) return none;
    const bool absent = v.id == kAbsent;
    if (absent) v = {};
    call.inputs.push_back(absent ? OpCall::Absent() : v.type());
    tensors.push_back(absent ? Tensor() : numbers(v));
  }
  Result<std::vector<TensorType>> types = InferCall(*def, call);
  if (!types.ok()) return none;
  call.outputs = std::move(*types);
  for (const TensorType& type : call.outputs) {
    if (type.elements() > kMostElements || type.elements() == 0) return none;
  }
  if (CallCost(*def, call).flops > kMostFlops) return none;
  std::vector<Tensor> results = EvaluateNode(*def, call, tensors);
  for (const Tensor& tensor : results) {
    if (IsFloat(tensor.type().dtype) && !Moderate(tensor, most)) return none;
  }
  const std::vector<Value> made = OpOutputs(op, given, std::move(attrs));
  RIDGE_CHECK(b_.ok(), b_.status().message());
  numbers_.resize(b_.graph().values().size());
  read_.resize(b_.graph().values().size());
  for (size_t i = 0; i < made.size(); ++i)
    numbers_[static_cast<size_t>(made[i].id)] = std::move(results[i]);
  for (Value v : given) {
    if (v.valid()) read_[static_cast<size_t>(v.id)] = true;
  }
  return made;
}

std::vector<Value> Sketch::Outputs(const char* op, std::vector<Value> inputs, AttrMap attrs) {
  return AddNode(op, inputs, std::move(attrs), kLargest);
}

Value Sketch::MaskedOp(const char* op, std::vector<Value> inputs, AttrMap attrs) {
  return AddNode(op, inputs, std::move(attrs), std::numeric_limits<double>::infinity())[0];
}

Value Sketch::Slice(Value x, int64_t axis, int64_t begin, int64_t end) {
  return Op("slice", {x}, {{"axes", {axis}}, {"starts", {begin}}, {"ends", {end}}});
}

Dims Sketch::RandomFactors(int64_t count, int rank) {
  Dims dims(static_cast<size_t>(rank), 1);
  for (int64_t prime = 2; count > 1; ++prime) {
    for (; count % prime == 0; count /= prime) dims[static_cast<size_t>(dice.Below(rank))] *= prime;
  }
  return dims;
}

Value Sketch::AsRank(Value v, int rank) {
  if (!v.valid() || this->rank(v) == rank) return v;
  if (rank == 0) return Op("reduce_mean", {v});
  return Reshape(v, RandomFactors(elements(v), rank));
}

Value Sketch::Within(Value v, double low, double high) {
  if (!v.valid()) return v;
  const Tensor& x = numbers(v);
  bool inside = true;
  for (int64_t i = 0; i < x.elements(); ++i) inside = inside && x.at(i) >= low && x.at(i) <= high;
  if (inside) return v;
  const double from = std::max(low, -3.0), to = std::min(high, from + 6);
  return Plus(Times(Op("sigmoid", {v}), (to - from) * 0.9), from + (to - from) * 0.05);
}

void Sketch::Keep(Value v) {
  if (v.valid()) kept_.push_back(v);
}

Value Sketch::Recent() {
  if (kept_.empty()) return {};
  const auto count = std::min<int64_t>(3, static_cast<int64_t>(kept_.size()));
  return kept_[kept_.size() - 1 - static_cast<size_t>(dice.Below(count))];
}

Value Sketch::Any() { return dice.Percent(60) || kept_.empty() ? Recent() : dice.OneOf(kept_); }

Value Sketch::AnyOfRank(int least, int most) {
  for (int i = 0; i < 4; ++i) {
    const Value v = Any();
    if (v.valid() && rank(v) >= least && rank(v) <= most) return v;
  }
  return AsRank(Any(), static_cast<int>(dice.From(least, most)));
}

}  // namespace ridge

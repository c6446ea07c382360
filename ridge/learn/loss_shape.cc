#include "ridge/learn/loss_shape.h"

#include <fmt/format.h>

#include <numeric>

#include "ridge/graph/builder.h"
#include "ridge/learn/training_graph.h"

namespace ridge {
namespace {

constexpr char kWeightsName[] = "class_weights";

Status NeedsCrossEntropy(const Graph& graph) {
  return InvalidArgument(fmt::format(
      "{}: --label-smoothing, --class-weights, --focal and --dice shape the mean of one "
      "cross entropy, which this loss is not. hint: --loss cross_entropy:OUTPUT",
      graph.name));
}

Tensor WeightTensor(DType dtype, const std::vector<double>& weights) {
  Tensor tensor({dtype, {static_cast<int64_t>(weights.size())}});
  for (size_t i = 0; i < weights.size(); ++i)
    StoreFromDouble(dtype, tensor.mutable_data(), static_cast<int64_t>(i), weights[i]);
  return tensor;
}

class Shaper {
 public:
  // REQUIRES: the loss is the mean of the cross entropy `node`.
  Shaper(GraphBuilder& b, const LossShape& shape, const Node& node)
      : b_(b),
        shape_(shape),
        logits_(b.At(node.inputs[0])),
        label_(b.At(node.inputs[1])),
        nll_(b.At(node.outputs[0])),
        classes_(logits_.dims().back()),
        ignored_(static_cast<double>(node.attrs.integer("ignore_index"))) {}

  // `divisor`: of the loss as it is; invalid where it is the mean over all rows.
  Value Loss(Value divisor) {
    if (HasWeights()) Weigh();
    const bool mean = !divisor.valid() && !HasWeights();
    if (shape_.dice == 1) return DiceLoss(/*mean=*/true);
    const Value rows = RowsLoss(divisor);
    if (shape_.dice == 0) return rows;
    const Value own = rows * (1 - shape_.dice);
    return own + DiceLoss(mean) * shape_.dice;
  }

 private:
  Value RowsLoss(Value divisor) {
    Value rows = shape_.label_smoothing > 0 ? Smooth() : Weighted(nll_);
    if (shape_.focal_gamma > 0) rows = rows * FocalFactor();
    if (HasWeights()) {
      const Value sum = Sum(weight_);
      divisor = Where(sum > 0, sum, 1);  // all labels may be ignored
    }
    if (!divisor.valid()) return Mean(rows);
    const Value total = Sum(rows);
    return total / Cast(divisor, rows.dtype());
  }

  bool HasWeights() const { return shape_.class_weights_come || !shape_.class_weights.empty(); }

  // 1 for a label that counts, else 0.
  Value Counted() { return Cast(NotEqual(label_, ignored_), nll_.dtype()); }

  void Weigh() {
    std::vector<double> numbers = shape_.class_weights;
    numbers.resize(static_cast<size_t>(classes_), 1);
    weights_ = b_.Constant(WeightTensor(nll_.dtype(), numbers), kWeightsName);
    const Value low = Maximum(label_, ScalarLike(label_, 0));
    const Value inside = Minimum(low, ScalarLike(label_, static_cast<double>(classes_ - 1)));
    const Value of_label = Gather(weights_, inside);
    weight_ = of_label * Counted();
  }

  Value Weighted(Value rows) const { return weight_.valid() ? rows * weight_ : rows; }

  // One number in the place of a class: [.., 1].
  Value Column(Value x) const {
    Dims dims = x.dims();
    dims.push_back(1);
    return ReshapeExactly(x, dims);
  }

  // q: all 0 where the label is ignored.
  Value OneHot() {
    std::vector<double> numbers(static_cast<size_t>(classes_));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    const Value index = b_.Constant(WeightTensor(label_.dtype(), numbers), "class_index");
    return Cast(Equal(Column(label_), index), nll_.dtype());
  }

  // Over the places of a sample: [B, C].
  Value SumOfPlaces(Value x) const {
    std::vector<int64_t> places(static_cast<size_t>(x.rank() - 2));
    std::iota(places.begin(), places.end(), int64_t{1});
    return Sum(x, places);
  }

  // `mean`: as a mean over the samples; else as a sum over them by their number, which slices of a
  // batch add to sums.
  Value DiceLoss(bool mean) {
    const Value one_hot = OneHot();
    const Value p = Op("softmax", {Cast(logits_, nll_.dtype())}, {{"axis", -1}});
    const Value counted = p * Column(Counted());
    const Value both = SumOfPlaces(counted * one_hot) * 2.0 + 1.0;
    const Value each = SumOfPlaces(counted) + SumOfPlaces(one_hot) + 1.0;
    const Value missed = 1.0 - both / each;  // [B, C]
    if (!b_.ok()) return {};
    Value by_sample = weights_.valid() ? Sum(missed * weights_, {-1}) / Sum(weights_)
                                       : Sum(missed, {-1}) * (1 / static_cast<double>(classes_));
    if (mean) return Mean(by_sample);
    return Sum(by_sample) * (1 / static_cast<double>(label_.dims()[0]));
  }

  // (W q - w) / C, by class.
  Value Pull() {
    const Value one_hot = OneHot();
    const double share = 1 / static_cast<double>(classes_);
    if (!weights_.valid()) return one_hot - share;
    const Value total = one_hot * Sum(weights_);
    return (total - weights_) * share;
  }

  Value Smooth() {
    const double e = shape_.label_smoothing;
    const Value pull = Pull();
    const Value x = Cast(logits_, nll_.dtype());
    const Value moved = Sum(pull * x, {-1});
    const Value spread = moved * Counted() * e;
    if (!weight_.valid()) return nll_ + spread;
    const Value all = Sum(weights_) * (e / static_cast<double>(classes_));
    const Value own = weight_ * (1 - e);
    const Value factor = own + all;
    return nll_ * factor + spread;
  }

  // A row that is certainly right has 0^gamma, whose slope is infinite below 1.
  Value FocalFactor() {
    constexpr double kLeast = 1e-6;
    const Value wrong = 1 - Exp(-nll_);
    const Value above = Maximum(wrong, ScalarLike(wrong, kLeast));
    return Pow(above, ScalarLike(above, shape_.focal_gamma));
  }

  GraphBuilder& b_;
  const LossShape& shape_;
  const Value logits_, label_, nll_;
  const int64_t classes_;
  const double ignored_;
  Value weights_;  // [C]
  Value weight_;   // by row, 0 where the label is ignored
};

Status CheckWeights(const Graph& graph, const LossShape& shape, const ForwardInfo& facts) {
  const int64_t classes = graph.type(facts.logits).dims.back();
  const auto given = static_cast<int64_t>(shape.class_weights.size());
  if (given == 0 || given == classes) return Status();
  return InvalidArgument(
      fmt::format("--class-weights has {} numbers; {} has {} classes", given, graph.name, classes));
}

Status CheckPlaces(const Graph& graph, const LossShape& shape, const ForwardInfo& facts) {
  if (shape.dice == 0 || graph.type(facts.label).rank() > 1) return Status();
  return InvalidArgument(
      fmt::format("{}: --dice needs several labels a sample, as masks have; '{}' is {}", graph.name,
                  graph.value(facts.label).name, TypeToString(graph.type(facts.label))));
}

// The divisor of a quotient of sums; invalid for a mean.
Value DivisorOf(GraphBuilder& b, ValueId loss) {
  const Node* node = b.graph().producer(loss);
  while (node->op->name == "reshape" || node->op->name == "cast")
    node = b.graph().producer(node->inputs[0]);
  return node->op->name == "div" ? b.At(node->inputs[1]) : Value();
}

}  // namespace

Result<Graph> WithLossShape(Graph forward, const LossShape& shape) {
  if (shape.plain()) return forward;
  RIDGE_ASSIGN_OR_RETURN(const ForwardInfo facts, InspectForward(forward));
  if (facts.logits == kNoValue || !facts.loss_is_cross_entropy) return NeedsCrossEntropy(forward);
  RIDGE_RETURN_IF_ERROR(CheckWeights(forward, shape, facts));
  RIDGE_RETURN_IF_ERROR(CheckPlaces(forward, shape, facts));
  GraphBuilder b(std::move(forward));
  const auto& nodes = b.graph().nodes();
  const auto found = std::find_if(nodes.begin(), nodes.end(), [](const Node& node) {
    return node.op->name == "softmax_cross_entropy";
  });
  const Node node = *found;  // the builder's nodes move
  const Value loss = Shaper(b, shape, node).Loss(DivisorOf(b, facts.loss));
  if (!b.ok()) return b.status();
  const std::vector<GraphOutput> outputs = b.graph().outputs();
  b.graph().ClearOutputs();
  for (const GraphOutput& output : outputs)
    b.graph().AddOutput(output.name, output.name == "loss" ? loss.id : output.value);
  b.graph().AddOutput(kEvalLossOutput, facts.loss);
  return b.Build();
}

void SetClassWeights(const std::vector<double>& weights, Graph& graph) {
  const ValueId id = graph.FindValue(kWeightsName);
  RIDGE_CHECK(id != kNoValue, "the graph has no class weights");
  ValueInfo& info = graph.mutable_value(id);
  RIDGE_CHECK(info.type.elements() == static_cast<int64_t>(weights.size()), "a weight a class");
  info.constant = WeightTensor(info.type.dtype, weights);
}

}  // namespace ridge

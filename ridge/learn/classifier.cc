#include "ridge/learn/classifier.h"

#include <numeric>

#include "ridge/graph/batch_axis.h"

namespace ridge {

namespace {

// Over all but the first dimension.
Value ReduceRest(GraphBuilder& b, const char* op, Value x) {
  if (!b.ok() || x.rank() == 1) return x;
  std::vector<int64_t> rest(static_cast<size_t>(x.rank() - 1));
  std::iota(rest.begin(), rest.end(), int64_t{1});
  return Op(op, {x}, {{"axes", rest}, {"keep_dims", 0}});
}

// Whether the largest logit is the label's.
Value IsHit(GraphBuilder& b, Value logits, Value label) {
  const Value best = Op("argmax", {logits}, {{"axis", -1}});
  if (!b.ok()) return {};
  return Equal(Cast(best, label.dtype()), label);
}

// 1 for a label that counts, else 0.
Value Counts(GraphBuilder& b, Value label, int64_t ignored) {
  if (!b.ok()) return {};
  return NotEqual(label, static_cast<double>(ignored));
}

Value Counted(GraphBuilder& b, Value label, int64_t ignored) {
  return Cast(Counts(b, label, ignored), DType::kF32);
}

// The labels of the whole batch, also in the graph of a slice: the divisor counts them.
Value WholeLabels(GraphBuilder& b, const ForwardInfo& facts) {
  const ValueId whole = b.graph().FindValue(kWholePrefix + b.graph().value(facts.label).name);
  return b.At(whole == kNoValue ? facts.label : whole);
}

}  // namespace

Value IsCorrect(GraphBuilder& b, Value logits, Value label) {
  const Value hit = IsHit(b, logits, label);
  if (!b.ok()) return {};
  return ReduceRest(b, "reduce_mean", Cast(hit, DType::kF32));
}

LabelHits CountHits(GraphBuilder& b, Value logits, Value label, int64_t ignored) {
  const Value hit = IsHit(b, logits, label);
  if (!b.ok()) return {};
  const Value counts = Counts(b, label, ignored);
  const Value right = And(hit, counts);
  if (!b.ok()) return {};
  return {ReduceRest(b, "reduce_sum", Cast(right, DType::kF32)),
          ReduceRest(b, "reduce_sum", Cast(counts, DType::kF32))};
}

Value CorrectSamples(GraphBuilder& b, const ForwardInfo& facts) {
  if (!facts.ignored_label) return Sum(IsCorrect(b, b.At(facts.logits), b.At(facts.label)));
  const LabelHits hits = CountHits(b, b.At(facts.logits), b.At(facts.label), *facts.ignored_label);
  if (!b.ok()) return {};
  const Value labels = WholeLabels(b, facts);
  const Value counted = Sum(Counted(b, labels, *facts.ignored_label));
  const Value at_least_one = Maximum(counted, b.Scalar(DType::kF32, 1));
  if (!b.ok()) return {};
  const Value right = Sum(hits.right);
  return right * static_cast<double>(labels.dims()[0]) / at_least_one;
}

}  // namespace ridge

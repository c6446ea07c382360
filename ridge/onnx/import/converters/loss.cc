// ONNX converters: losses.
//
// x is [N,C,d1,...] and labels are [N,d1,...].  Cross entropy goes through softmax_cross_entropy,
// which wants classes last; negative log likelihood picks one class out of x where it lies.
#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <optional>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/import/converter.h"

namespace ridge {
namespace {

struct LossCall {
  Value x, labels;
  Value weights;  // [C], invalid when absent
  std::optional<int64_t> ignored;
  std::string reduction;
  TensorType type;  // of x
  int64_t classes = 0;
};

Status CheckLabels(OnnxNode& n, const LossCall& call) {
  const TensorType labels = n.type(1);
  Dims wanted = call.type.dims;
  wanted.erase(wanted.begin() + 1);
  const bool index = labels.dtype == DType::kI64 || labels.dtype == DType::kI32;
  if (index && labels.dims == wanted) return Status();
  return n.Error(fmt::format("labels are {}; they must be {} or {} for x {}", TypeToString(labels),
                             TypeToString({DType::kI64, wanted}),
                             TypeToString({DType::kI32, wanted}), TypeToString(call.type)));
}

Result<LossCall> ReadCall(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  LossCall call;
  call.type = n.type(0);
  if (!IsFloat(call.type.dtype) || call.type.rank() < 2) {
    return n.Error(fmt::format("input 0 is {}; it must be a float [batch, classes, ...]",
                               TypeToString(call.type)));
  }
  call.classes = call.type.dims[1];
  RIDGE_RETURN_IF_ERROR(CheckLabels(n, call));
  call.x = n[0];
  call.labels = n[1];
  call.weights = n[2];
  call.reduction = n.text("reduction", "mean");
  if (n.has_attr("ignore_index")) call.ignored = n.integer("ignore_index", 0);
  if (n.has_input(2) && n.type(2).dims != Dims{call.classes}) {
    return n.Error(fmt::format("weights are {}; they must be [{}], one for each class",
                               TypeToString(n.type(2)), call.classes));
  }
  if (call.reduction == "none" || call.reduction == "sum" || call.reduction == "mean") return call;
  return n.Error(fmt::format("reduction is '{}'; it must be none, sum or mean", call.reduction));
}

Value LabelScalar(GraphBuilder& b, const LossCall& call, int64_t value) {
  const DType dtype = call.labels.dtype();
  return b.Scalar(dtype, static_cast<double>(value));
}

// Whether each label is the ignored one.  Invalid when none can be.
Value IsIgnored(GraphBuilder& b, const LossCall& call) {
  if (!b.ok() || !call.ignored) return {};
  return Equal(call.labels, LabelScalar(b, call, *call.ignored));
}

// The weight of each label, 0 where it is ignored; invalid when all weigh the same.
Value WeightOfLabels(GraphBuilder& b, const LossCall& call, DType dtype) {
  const Value ignored = IsIgnored(b, call);
  const Value one = b.Scalar(dtype, 1), zero = b.Scalar(dtype, 0);
  if (!call.weights.valid()) return ignored.valid() ? Where(ignored, zero, one) : Value{};
  Value labels = call.labels;
  // An ignored label may be no class at all.
  if (ignored.valid()) labels = Where(ignored, LabelScalar(b, call, 0), labels);
  const Value weight = Gather(Cast(call.weights, dtype), labels);
  return ignored.valid() ? Where(ignored, zero, weight) : weight;
}

// Reduces losses [N,d1,...] that are not weighted yet.
Value ReduceLosses(OnnxNode& n, const LossCall& call, Value losses) {
  GraphBuilder& b = n.b();
  const Value weight = WeightOfLabels(b, call, losses.dtype());
  if (weight.valid()) {
    if (call.weights.valid()) losses = losses * weight;
    if (call.reduction == "mean") {
      const Value whole = Sum(weight);
      return Sum(losses) / whole;
    }
  }
  if (call.reduction == "mean") return Mean(losses);
  if (call.reduction == "sum") return Sum(losses);
  return losses;
}

// x with its classes last.
Value ClassesLast(const LossCall& call) {
  const auto rank = static_cast<size_t>(call.type.rank());
  if (rank == 2) return call.x;
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + 1);
  order.push_back(1);
  return Transpose(call.x, order);
}

// PyTorch's exporters write class probabilities where ONNX knows labels only; the meaning is clear.
bool LabelsAreProbabilities(OnnxNode& n) {
  return n.has_input(1) && n.dims(0).size() >= 2 && IsFloat(n.type(0).dtype) &&
         n.type(1) == n.type(0);
}

// -sum(p * weight * log_softmax(x)) over the classes; the mean is over all else.
Status ConvertSoftLabels(OnnxNode& n) {
  const Dims dims = n.dims(0);
  Value p = n[1];
  if (n.has_input(2)) {
    if (n.dims(2) != Dims{dims[1]})
      return n.Error(fmt::format("weights are {}; they must be [{}], one for each class",
                                 TypeToString(n.type(2)), dims[1]));
    Dims beside(dims.size(), 1);
    beside[1] = dims[1];
    p = p * ReshapeExactly(n[2], beside);
  }
  const Value logs = Op("log_softmax", {n[0]}, {{"axis", 1}});
  const Value losses = -Sum(p * logs, {1});
  const std::string reduction = n.text("reduction", "mean");
  n.Set(0, reduction == "mean" ? Mean(losses) : reduction == "sum" ? Sum(losses) : losses);
  if (n.wants(1)) n.Set(1, logs);
  return n.status();
}

Status ConvertSoftmaxCrossEntropy(OnnxNode& n) {
  if (LabelsAreProbabilities(n)) return ConvertSoftLabels(n);
  RIDGE_ASSIGN_OR_RETURN(const LossCall call, ReadCall(n));
  // Without ignore_index no label is ignored; the smallest number is no label.
  const int64_t ignored = call.ignored.value_or(std::numeric_limits<int64_t>::min());
  const Value losses =
      Op("softmax_cross_entropy", {ClassesLast(call), call.labels}, {{"ignore_index", ignored}});
  const Value loss = ReduceLosses(n, call, losses);
  n.Set(0, Cast(loss, call.type.dtype));
  if (n.wants(1)) n.Set(1, Op("log_softmax", {call.x}, {{"axis", 1}}));
  return n.status();
}

// 0, 1, ..., C - 1 as [1,C,1,...] in the labels' dtype.
Value ClassNumbers(GraphBuilder& b, const LossCall& call) {
  Dims dims(static_cast<size_t>(call.type.rank()), 1);
  dims[1] = call.classes;
  Tensor numbers({call.labels.dtype(), dims});
  for (int64_t c = 0; c < call.classes; ++c) {
    StoreFromDouble(numbers.type().dtype, numbers.mutable_data(), c, static_cast<double>(c));
  }
  return b.Constant(std::move(numbers), "classes");
}

// -x[n, label, d1, ...]; 0 where the label is ignored, NaN where it is no class.
Value PickedLosses(GraphBuilder& b, const LossCall& call) {
  const DType dtype = call.type.dtype;
  Dims dims = call.type.dims;
  dims[1] = 1;
  const Value labels = ReshapeExactly(call.labels, dims);
  const Value here = Equal(labels, ClassNumbers(b, call));
  const Value zero = b.Scalar(dtype, 0);
  const Value picked = Sum(Where(here, call.x, zero), {1});
  const Value from_first = call.labels >= 0;
  const Value to_last = call.labels < static_cast<double>(call.classes);
  const Value inside = And(from_first, to_last);
  const Value nan = b.Scalar(dtype, std::numeric_limits<double>::quiet_NaN());
  const Value losses = Where(inside, -picked, nan);
  const Value ignored = IsIgnored(b, call);
  return ignored.valid() ? Where(ignored, zero, losses) : losses;
}

Result<Value> ConvertNegativeLogLikelihood(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const LossCall call, ReadCall(n));
  if (call.classes > (int64_t{1} << 24)) {
    return n.Unsupported(fmt::format("{} classes; at most 2^24", call.classes));
  }
  return ReduceLosses(n, call, PickedLosses(n.b(), call));
}

constexpr OnnxConverter kConverters[] = {
    {"", "NegativeLogLikelihoodLoss", ConvertNegativeLogLikelihood},
    {"", "SoftmaxCrossEntropyLoss", ConvertSoftmaxCrossEntropy},
};

}  // namespace

std::span<const OnnxConverter> OnnxLossConverters() { return kConverters; }

}  // namespace ridge

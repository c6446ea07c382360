#include "tests/ops/check_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/core/random.h"
#include "ridge/graph/autodiff.h"
#include "ridge/graph/interpret.h"

namespace ridge {
namespace {

constexpr double kStep = 0x1p-17;  // of the differences: error 1e-11 by truncation and by rounding
constexpr double kRelative = 1e-6;

double Epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0x1p-23;
    case DType::kF16:
      return 0x1p-10;
    case DType::kBF16:
      return 0x1p-7;
    default:
      return 0;
  }
}

bool Close(double got, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::abs(got - expected) <= tolerance;
}

// A case whose floats are all f64, those of products too.
OpCase InDouble(const OpCase& op_case) {
  OpCase wide = op_case;
  wide.attrs.erase("out_dtype");
  for (TensorType& type : wide.inputs) {
    if (IsFloat(type.dtype) && type != OpCall::Absent()) type.dtype = DType::kF64;
  }
  return wide;
}

Tensor Widen(const Tensor& tensor) {
  if (tensor.data() == nullptr || !IsFloat(tensor.type().dtype)) return tensor;
  Tensor wide({DType::kF64, tensor.type().dims});
  ConvertToDouble(tensor.type().dtype, tensor.data(), wide.as_mutable<double>(), tensor.elements());
  return wide;
}

std::vector<Tensor> AllInputs(const OpCase& op_case) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) inputs.push_back(CaseInput(op_case, i));
  return inputs;
}

std::string CompareOutput(size_t output, const Tensor& got, const std::vector<double>& expected,
                          double relative, double floor) {
  if (got.elements() != static_cast<int64_t>(expected.size()))
    return fmt::format("output {} has {} elements, {} are expected", output, got.elements(),
                       expected.size());
  for (int64_t k = 0; k < got.elements(); ++k) {
    const double want = expected[static_cast<size_t>(k)];
    const double tolerance = relative * std::max(std::abs(want), floor);
    if (!Close(got.at(k), want, tolerance))
      return fmt::format("output {} element {} is {}, expected {}", output, k, got.at(k), want);
  }
  return "";
}

std::vector<double> AsDoubles(const Tensor& tensor) {
  std::vector<double> values(static_cast<size_t>(tensor.elements()));
  for (size_t k = 0; k < values.size(); ++k) values[k] = tensor.at(static_cast<int64_t>(k));
  return values;
}

std::string CheckCost(const OpDef& op, const OpCall& call) {
  const Cost cost = CallCost(op, call);
  if (cost.flops >= 0 && cost.bytes_read >= 0 && cost.bytes_written >= 0) return "";
  return fmt::format("cost is {} flops, {} bytes read, {} written; none may be negative",
                     cost.flops, cost.bytes_read, cost.bytes_written);
}

// The operator in f64 beside its gradients by autodiff: what the differences are compared with.
class GradientProbe {
 public:
  GradientProbe(const OpDef& op, const OpCase& op_case)
      : op_(op), case_(InDouble(op_case)), inputs_(AllInputs(case_)) {}

  std::string Run() {
    Result<OpCall> call = InferCase(op_, case_);
    if (!call.ok()) return call.status().message();
    call_ = *std::move(call);
    if (Status status = Differentiate(); !status.ok()) return status.message();
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (std::string wrong = CheckInput(wanted_[i], grads_[i]); !wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  bool InLoss(size_t output) const {
    if (!IsFloat(call_.outputs[output].dtype)) return false;
    const std::vector<int64_t>& some = case_.loss_outputs;
    return some.empty() ||
           std::find(some.begin(), some.end(), static_cast<int64_t>(output)) != some.end();
  }

  bool Wanted(size_t input) const {
    const std::vector<int>& none = op_.no_gradient_inputs;
    return call_.has_input(input) && IsFloat(call_.inputs[input].dtype) &&
           std::find(none.begin(), none.end(), static_cast<int>(input)) == none.end();
  }

  Tensor Weights(size_t output) const {
    const RandomKey key{StableHash(case_.text), 1000 + static_cast<uint32_t>(output), 0};
    Tensor weights(call_.outputs[output]);
    for (int64_t k = 0; k < weights.elements(); ++k) {
      const double unit = ToUniform(Draw(key, 0, static_cast<uint64_t>(k)));
      StoreFromDouble(weights.type().dtype, weights.mutable_data(), k, 0.5 + unit);
    }
    return weights;
  }

  Status Differentiate() {
    GraphBuilder b("gradient");
    std::vector<Value> inputs, wanted;
    std::map<std::string, Tensor> given;
    for (size_t i = 0; i < case_.inputs.size(); ++i) {
      const std::string name = fmt::format("x{}", i);
      inputs.push_back(call_.has_input(i) ? b.Input(name, case_.inputs[i]) : Value());
      if (call_.has_input(i)) given[name] = inputs_[i];
      if (!Wanted(i)) continue;
      wanted_.push_back(i);
      wanted.push_back(inputs.back());
    }
    RIDGE_ASSIGN_OR_RETURN(const Value loss, Loss(b, inputs));
    if (!loss.valid()) wanted_.clear();
    if (wanted_.empty()) return Status();
    RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> grads, AppendGradients(b, loss, wanted));
    RIDGE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, EvaluateGraph(b.graph(), given));
    for (Value v : grads) grads_.push_back(values[static_cast<size_t>(v.id)]);
    return Status();
  }

  // sum over outputs of sum(output * weights); no value when no output is a float.
  Result<Value> Loss(GraphBuilder& b, const std::vector<Value>& inputs) {
    std::vector<ValueId> ids;
    for (Value v : inputs) ids.push_back(v.id);
    RIDGE_ASSIGN_OR_RETURN(const NodeId node, b.graph().AddNode(op_, ids, case_.attrs, {"y"}));
    const std::vector<ValueId> outputs = b.graph().node(node).outputs;
    Value loss;
    for (size_t k = 0; k < outputs.size(); ++k) {
      weights_.push_back(Weights(k));
      if (!InLoss(k)) continue;
      Value term = b.At(outputs[k]) * b.Constant(weights_[k]);
      term = Cast(Sum(term), DType::kF64);
      loss = loss.valid() ? loss + term : term;
    }
    return loss;
  }

  // The derivative along `direction` in input i, by a central difference.  Differences are taken
  // element by element before they are summed, so that elements that don't change add no noise.
  double Derivative(size_t i, const std::vector<double>& direction) const {
    const std::vector<Tensor> up = At(i, direction, kStep), down = At(i, direction, -kStep);
    double sum = 0;
    for (size_t k = 0; k < up.size(); ++k) {
      if (!InLoss(k)) continue;
      for (int64_t e = 0; e < up[k].elements(); ++e)
        sum += weights_[k].at(e) * (up[k].at(e) - down[k].at(e));
    }
    return sum / (2 * kStep);
  }

  std::vector<Tensor> At(size_t i, const std::vector<double>& direction, double step) const {
    std::vector<Tensor> inputs = inputs_;
    inputs[i] = Tensor(inputs_[i].type());
    for (int64_t e = 0; e < inputs[i].elements(); ++e) {
      inputs[i].as_mutable<double>()[e] =
          inputs_[i].at(e) + step * direction[static_cast<size_t>(e)];
    }
    return EvaluateNode(op_, call_, inputs);
  }

  std::string CheckInput(size_t i, const Tensor& grad) const {
    if (grad.type() != case_.inputs[i])
      return fmt::format("the gradient of input {} is {}", i, TypeToString(grad.type()));
    const auto count = static_cast<size_t>(grad.elements());
    const RandomKey key{StableHash(case_.text), 2000 + static_cast<uint32_t>(i), 0};
    for (uint32_t trial = 0; count > 0 && trial < Trials(count); ++trial) {
      std::vector<double> direction(count, 0);
      if (trial < 2) {
        for (size_t e = 0; e < count; ++e) direction[e] = Draw(key, trial, e) % 2 == 0 ? -1 : 1;
      } else {
        direction[count <= 24 ? trial - 2 : Draw(key, trial, 0) % count] = 1;
      }
      std::string wrong = CheckDirection(i, grad, direction);
      if (!wrong.empty()) return wrong + (trial < 2 ? " along all elements" : " at one element");
    }
    return "";
  }

  // Two directions through all elements, then up to 24 single ones, fewer where a call is long.
  size_t Trials(size_t count) const {
    const int64_t affordable = 20'000'000 / std::max<int64_t>(CallCost(op_, call_).flops, 1);
    const auto singles = static_cast<size_t>(std::clamp<int64_t>(affordable, 3, 24));
    return 2 + std::min(count, singles);
  }

  // The error is measured against the largest element of the gradient or, along a direction, its
  // norm; the floor is the rounding of the differences themselves.
  std::string CheckDirection(size_t i, const Tensor& grad,
                             const std::vector<double>& direction) const {
    double expected = 0, norm = 0, largest = 0;
    for (size_t e = 0; e < direction.size(); ++e) {
      const double g = grad.at(static_cast<int64_t>(e));
      expected += g * direction[e];
      norm += g * direction[e] * g * direction[e];
      largest = std::max(largest, std::abs(g));
    }
    const double got = Derivative(i, direction);
    const double scale = std::max({std::abs(got), std::sqrt(norm), largest});
    const double floor = 2e-10 * std::sqrt(static_cast<double>(direction.size()));
    if (std::abs(got - expected) <= kRelative * scale + floor) return "";
    return fmt::format("input {}: the gradient is {:.12g}, the difference quotient {:.12g}", i,
                       expected, got);
  }

  const OpDef& op_;
  OpCase case_;
  std::vector<Tensor> inputs_;
  OpCall call_;
  std::vector<size_t> wanted_;   // inputs
  std::vector<Tensor> grads_;    // of wanted_
  std::vector<Tensor> weights_;  // by output
};

}  // namespace

std::string CheckError(const OpDef& op, const OpCase& op_case) {
  const Result<OpCall> call = InferCase(op, op_case);
  if (call.ok()) return "is accepted; an error is expected: " + op_case.expected_error;
  if (call.status().message() == op_case.expected_error) return "";
  return fmt::format("the error is\n  {}\nexpected\n  {}", call.status().message(),
                     op_case.expected_error);
}

std::string CheckValues(const OpDef& op, const OpCase& op_case) {
  const Result<OpCall> call = InferCase(op, op_case);
  if (!call.ok()) return call.status().message();
  const std::vector<Tensor> outputs = EvaluateNode(op, *call, AllInputs(op_case));
  if (outputs.size() != op_case.expected.size())
    return fmt::format("{} outputs, {} are expected", outputs.size(), op_case.expected.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    const ExpectedOutput& expected = op_case.expected[k];
    const TensorType& type = outputs[k].type();
    if (expected.has_type && expected.type != type) {
      return fmt::format("output {} is {}, expected {}", k, TypeToString(type),
                         TypeToString(expected.type));
    }
    const double relative = std::max(1e-12, Epsilon(type.dtype));
    std::string wrong = CompareOutput(k, outputs[k], expected.values, relative, 1e-3);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string CheckRounding(const OpDef& op, const OpCase& op_case) {
  const Result<OpCall> narrow = InferCase(op, op_case);
  if (!narrow.ok()) return narrow.status().message();
  const Result<OpCall> wide = InferCase(op, InDouble(op_case));
  if (!wide.ok()) return "in f64: " + wide.status().message();
  const std::vector<Tensor> inputs = AllInputs(op_case);
  std::vector<Tensor> wide_inputs;
  for (const Tensor& input : inputs) wide_inputs.push_back(Widen(input));
  const std::vector<Tensor> got = EvaluateNode(op, *narrow, inputs);
  const std::vector<Tensor> expected = EvaluateNode(op, *wide, wide_inputs);
  for (size_t k = 0; k < got.size(); ++k) {
    if (got[k].type().dims != expected[k].type().dims) {
      return fmt::format("output {} is {} in f64 and {} in the declared dtypes", k,
                         TypeToString(expected[k].type()), TypeToString(got[k].type()));
    }
    const double relative = 4 * Epsilon(got[k].type().dtype);
    std::string wrong = CompareOutput(k, got[k], AsDoubles(expected[k]), relative, 1);
    if (!wrong.empty()) return wrong + " (that of f64)";
  }
  return CheckCost(op, *narrow);
}

std::string CheckGradients(const OpDef& op, const OpCase& op_case) {
  if (op.gradient == nullptr || !op_case.check_gradient) return "";
  return GradientProbe(op, op_case).Run();
}

}  // namespace ridge

#include "tests/onnx/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "onnx/onnx-ml.pb.h"
#include "ridge/core/random.h"
#include "ridge/graph/autodiff.h"
#include "ridge/graph/interpret.h"
#include "tests/onnx/to_f64.h"

namespace ridge {
namespace {

constexpr int64_t kMostElements = 20'000;  // of all inputs together: differences are slow
constexpr int kProbes = 6;                 // elements of each input that are moved

// A case in f64 with its loss and the gradients of its float inputs.
struct Problem {
  Graph graph;
  std::map<std::string, Tensor> given;
  ValueId loss = kNoValue;
  std::vector<std::pair<std::string, ValueId>> gradients;  // of inputs, by name
};

CaseResult Skip(CaseResult result, const std::string& why) {
  result.outcome = Outcome::kSkipped;
  result.text = FirstLine(why);
  return result;
}

CaseResult Fail(CaseResult result, const std::string& why) {
  result.outcome = Outcome::kFailed;
  result.text = FirstLine(why);
  return result;
}

// Fixed numbers in [-1, 1), so that no gradient vanishes by symmetry.
Tensor Weights(const TensorType& type, uint32_t stream) {
  Tensor weights(type);
  const RandomKey key{1, stream, 0};
  for (int64_t i = 0; i < weights.elements(); ++i) {
    const auto words = DrawBlock(key, 0, static_cast<uint64_t>(i));
    weights.as_mutable<double>()[i] = 2.0 * ToUniform(words[0]) - 1;
  }
  return weights;
}

// sum(outputs * weights) over the f64 outputs that are computed; invalid when there is none.
Value AddLoss(GraphBuilder& b) {
  Value loss;
  const std::vector<GraphOutput> outputs = b.graph().outputs();
  std::set<ValueId> seen;
  for (const GraphOutput& output : outputs) {
    const ValueInfo info = b.graph().value(output.value);
    if (info.type.dtype != DType::kF64 || info.kind == ValueKind::kConstant) continue;
    if (!seen.insert(output.value).second) continue;
    const Value weights = b.Constant(Weights(info.type, static_cast<uint32_t>(seen.size())));
    const Value term = Sum(b.At(output.value) * weights);
    loss = loss.valid() ? loss + term : term;
  }
  return loss;
}

// Inputs in f64 on which the loss may depend.
std::vector<Value> FloatInputs(GraphBuilder& b) {
  const Graph& graph = b.graph();
  std::vector<Value> inputs;
  for (const ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    const TensorType& type = graph.type(id);
    if (type.dtype == DType::kF64 && type.elements() > 0) inputs.push_back(b.At(id));
  }
  return inputs;
}

Result<double> LossAt(const Problem& problem, const std::map<std::string, Tensor>& given) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, EvaluateGraph(problem.graph, given));
  return values[static_cast<size_t>(problem.loss)].at(0);
}

Result<double> LossMoved(const Problem& problem, const std::string& input, int64_t element,
                         double by) {
  std::map<std::string, Tensor> given = problem.given;
  const Tensor& at = problem.given.at(input);
  Tensor moved(at.type());
  std::copy_n(at.as<double>(), at.elements(), moved.as_mutable<double>());
  moved.as_mutable<double>()[element] += by;
  given[input] = moved;
  return LossAt(problem, given);
}

enum class Probe { kAgrees, kKink, kDiffers };

// At a smooth place left, right and central difference are the derivative up to their error.  At a
// kink left and right differ; at a jump the central one grows when the step shrinks.
Result<Probe> ProbeElement(const Problem& problem, const std::string& input, int64_t element,
                           double gradient, std::string& text) {
  const double x = problem.given.at(input).at(element);
  const double step = std::max(1e-5, 1e-8 * std::abs(x));
  RIDGE_ASSIGN_OR_RETURN(const double here, LossAt(problem, problem.given));
  RIDGE_ASSIGN_OR_RETURN(const double right, LossMoved(problem, input, element, step));
  RIDGE_ASSIGN_OR_RETURN(const double left, LossMoved(problem, input, element, -step));
  const double central = (right - left) / (2 * step);
  const double scale = std::max({1.0, std::abs(central), std::abs(gradient)});
  const double noise = 1e-14 * (std::abs(here) + std::abs(x)) / step;
  if (std::abs(central - gradient) <= 1e-6 * scale + noise) return Probe::kAgrees;
  RIDGE_ASSIGN_OR_RETURN(const double near_right, LossMoved(problem, input, element, step / 8));
  RIDGE_ASSIGN_OR_RETURN(const double near_left, LossMoved(problem, input, element, -step / 8));
  const double near = (near_right - near_left) / (step / 4);
  // Where the slope has a kink (x / (1 + |x|) at 0) the difference errs in proportion to the step.
  const double limit = near + (near - central) / 7;
  if (std::abs(limit - gradient) <= 1e-6 * scale + 16 * noise) return Probe::kAgrees;
  const double bend = std::abs((right - here) - (here - left)) / step;
  const bool smooth = std::isfinite(central) && bend <= 1e-2 * scale &&
                      std::abs(near - central) <= 1e-2 * scale + 16 * noise;
  if (!smooth) return Probe::kKink;
  text = fmt::format("d/d{}[{}] is {}; the central difference is {}", input, element, gradient,
                     central);
  return Probe::kDiffers;
}

// Elements spread over the input.
std::vector<int64_t> Probes(int64_t elements) {
  std::set<int64_t> probes;
  for (int i = 0; i < kProbes; ++i) probes.insert((2 * i + 1) * elements / (2 * kProbes));
  return {probes.begin(), probes.end()};
}

CaseResult Compare(const Problem& problem, CaseResult result) {
  const Result<std::vector<Tensor>> values = EvaluateGraph(problem.graph, problem.given);
  if (!values.ok()) return Fail(result, values.status().message());
  int agreed = 0, kinks = 0;
  for (const auto& [input, id] : problem.gradients) {
    const Tensor& gradient = (*values)[static_cast<size_t>(id)];
    for (const int64_t element : Probes(gradient.elements())) {
      std::string text;
      const Result<Probe> probe = ProbeElement(problem, input, element, gradient.at(element), text);
      if (!probe.ok()) return Fail(result, probe.status().message());
      if (*probe == Probe::kDiffers) return Fail(result, text);
      (*probe == Probe::kAgrees ? agreed : kinks) += 1;
    }
  }
  if (agreed == 0) return Skip(result, fmt::format("all {} places are kinks", kinks));
  result.outcome = Outcome::kPassed;
  result.text = fmt::format("{} places, {} kinks", agreed, kinks);
  return result;
}

CaseResult Differentiate(const OnnxModel& model, const std::vector<Tensor>& inputs,
                         CaseResult result) {
  const Result<OnnxImport> imported = ImportForInputs(model, inputs);
  if (!imported.ok()) return Skip(result, imported.status().message());
  GraphBuilder b(imported->graph);
  const Value loss = AddLoss(b);
  const std::vector<Value> with = FloatInputs(b);
  if (!b.ok()) return Fail(result, b.status().message());
  if (!loss.valid() || with.empty()) return Skip(result, "no float input reaches a float output");
  const Result<std::vector<Value>> gradients = AppendGradients(b, loss, with);
  if (!gradients.ok()) {
    result.outcome = Outcome::kUnsupported;
    result.text = FirstLine(gradients.status().message());
    return result;
  }
  Problem problem;
  b.Output("gradient_check.loss", loss);
  for (size_t i = 0; i < with.size(); ++i) {
    const std::string& name = imported->graph.value(with[i].id).name;
    problem.gradients.emplace_back(name, (*gradients)[i].id);
  }
  problem.loss = loss.id;
  Result<Graph> graph = b.Build();
  if (!graph.ok()) return Fail(result, graph.status().message());
  problem.graph = std::move(*graph);
  problem.given = GivenInputs(model, problem.graph, inputs);
  return Compare(problem, result);
}

// Operators whose outputs are constant almost everywhere, or that only compare: they need no
// gradient.  The reason stands beside each.
struct WithoutGradient {
  const char* op;
  const char* reason;
};
constexpr std::array<WithoutGradient, 0> kWithoutGradient = {};

const char* ReasonWithoutGradient(const std::string& op) {
  for (const WithoutGradient& entry : kWithoutGradient) {
    if (op == entry.op) return entry.reason;
  }
  return nullptr;
}

// The worst that was found for an operator comes first.
struct OperatorGradients {
  int passed = 0, failed = 0, unsupported = 0, skipped = 0;
  std::string why;  // of the first that did not pass
};

std::map<std::string, OperatorGradients> ByOperator(const std::vector<CaseResult>& results) {
  std::map<std::string, OperatorGradients> by_operator;
  for (const CaseResult& result : results) {
    OperatorGradients& sum = by_operator[result.op];
    sum.passed += result.outcome == Outcome::kPassed ? 1 : 0;
    sum.failed += result.outcome == Outcome::kFailed ? 1 : 0;
    sum.unsupported += result.outcome == Outcome::kUnsupported ? 1 : 0;
    sum.skipped += result.outcome == Outcome::kSkipped ? 1 : 0;
    if (result.outcome == Outcome::kUnsupported && sum.why.empty()) sum.why = result.text;
  }
  return by_operator;
}

}  // namespace

CaseResult CheckGradientsOfCase(const OnnxCase& onnx_case) {
  CaseResult result;
  onnx::ModelProto proto;
  if (const Status status = ReadOnnxProto(onnx_case.model, proto); !status.ok()) {
    return Fail(result, status.message());
  }
  result.op = OperatorOfCase(onnx_case, proto);
  if (onnx_case.data.empty()) return Skip(result, "a large net");
  if (const std::string why = NotHeld(proto); !why.empty()) return Skip(result, why);
  const Result<OnnxCaseTensors> tensors = ReadOnnxTensors(onnx_case, proto);
  if (!tensors.ok()) return Skip(result, tensors.status().message());
  if (const Status status = ModelToF64(proto); !status.ok()) return Skip(result, status.message());
  const Result<OnnxModel> model = OnnxModel::Parse(proto.SerializeAsString(), onnx_case.name);
  if (!model.ok()) return Skip(result, model.status().message());
  std::vector<Tensor> inputs;
  int64_t elements = 0;
  for (const Tensor& input : tensors->inputs) {
    inputs.push_back(TensorToF64(input));
    elements += input.elements();
  }
  if (elements > kMostElements) return Skip(result, "large inputs");
  return Differentiate(*model, inputs, result);
}

bool ReportGradients(const std::vector<OnnxCase>& cases, const std::vector<CaseResult>& results,
                     bool all) {
  RIDGE_CHECK(cases.size() == results.size(), "a result for each case");
  bool good = true;
  int checked = 0;
  for (const auto& [op, sum] : ByOperator(results)) {
    const char* reason = ReasonWithoutGradient(op);
    checked += sum.passed > 0 ? 1 : 0;
    good = good && sum.failed == 0;
    if (sum.unsupported > 0 && reason == nullptr) {
      fmt::print("{}: {} cases have no gradient: {}\n", op, sum.unsupported, sum.why);
      good = false;
    }
    if (all && sum.unsupported == 0 && reason != nullptr) {
      fmt::print("{}: is listed as without gradient ({}), and has one\n", op, reason);
      good = false;
    }
  }
  int wrong = 0;
  for (const CaseResult& result : results) wrong += result.outcome == Outcome::kFailed ? 1 : 0;
  fmt::print("gradients: {} operators checked, {} cases wrong\n", checked, wrong);
  return good;
}

}  // namespace ridge

#include "tests/onnx/run_case.h"

#include <fmt/format.h>

#include <cmath>

#include "onnx/onnx-ml.pb.h"
#include "ridge/graph/interpret.h"

namespace ridge {
namespace {

enum class KnownInputs { kNone, kIntegers, kAll };

std::map<std::string, int64_t> DimsOf(const OnnxModel& model, const std::vector<Tensor>& inputs) {
  std::map<std::string, int64_t> dims;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const OnnxValueInfo& info = model.inputs()[i];
    const Dims& given = inputs[i].type().dims;
    for (size_t axis = 0; axis < std::min(info.dims.size(), given.size()); ++axis) {
      if (info.dims[axis].extent < 0) dims[info.dims[axis].name] = given[axis];
    }
  }
  return dims;
}

Result<OnnxImport> ImportWith(const OnnxModel& model, const std::vector<Tensor>& inputs,
                              KnownInputs known) {
  OnnxImportOptions options;
  options.dims = DimsOf(model, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_float = IsFloat(inputs[i].type().dtype);
    if (known == KnownInputs::kAll || (known == KnownInputs::kIntegers && !is_float)) {
      options.known_inputs[model.inputs()[i].name] = inputs[i];
    }
  }
  return ImportOnnx(model, options);
}

bool DependsOnData(const Status& status) {
  return status.message().find("depends on data") != std::string::npos;
}

// numpy's assert_allclose.
bool Near(double got, double wanted, const OnnxCase& onnx_case) {
  if (std::isnan(wanted) || std::isnan(got)) return std::isnan(wanted) && std::isnan(got);
  if (got == wanted) return true;
  return std::isfinite(got) && std::isfinite(wanted) &&
         std::abs(got - wanted) <= onnx_case.atol + onnx_case.rtol * std::abs(wanted);
}

std::string CompareTensors(const Tensor& got, const Tensor& wanted, const OnnxCase& onnx_case) {
  if (got.type() != wanted.type()) {
    return fmt::format("is {}; it must be {}", TypeToString(got.type()),
                       TypeToString(wanted.type()));
  }
  if (HasRandomOutputs(onnx_case.name)) return "";
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < got.elements(); ++i) {
    if (Near(got.at(i), wanted.at(i), onnx_case)) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  return fmt::format("{} of {} elements differ, the first at {}: {} for {}", wrong, got.elements(),
                     first, got.at(first), wanted.at(first));
}

std::string CompareOutputs(const Graph& graph, const std::vector<Tensor>& values,
                           const std::vector<Tensor>& wanted, const OnnxCase& onnx_case) {
  if (graph.outputs().size() != wanted.size()) {
    return fmt::format("{} outputs; there must be {}", graph.outputs().size(), wanted.size());
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const GraphOutput& output = graph.outputs()[i];
    const std::string text =
        CompareTensors(values[static_cast<size_t>(output.value)], wanted[i], onnx_case);
    if (!text.empty()) return fmt::format("output '{}': {}", output.name, text);
  }
  return "";
}

CaseResult Refused(CaseResult result, const Status& status) {
  result.outcome =
      status.code() == ErrorCode::kUnsupported ? Outcome::kUnsupported : Outcome::kFailed;
  result.text = FirstLine(status.message());
  return result;
}

bool IsStandard(const onnx::ModelProto& model) {
  for (const auto& node : model.graph().node()) {
    if (!node.domain().empty() && node.domain() != "ai.onnx") return false;
  }
  return true;
}

}  // namespace

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

Result<OnnxImport> ImportForInputs(const OnnxModel& model, const std::vector<Tensor>& inputs) {
  if (inputs.size() > model.inputs().size()) {
    return Status(ErrorCode::kInvalidData, fmt::format("{} inputs are given; the model has {}",
                                                       inputs.size(), model.inputs().size()));
  }
  Result<OnnxImport> imported = ImportWith(model, inputs, KnownInputs::kNone);
  for (const KnownInputs known : {KnownInputs::kIntegers, KnownInputs::kAll}) {
    if (imported.ok() || !DependsOnData(imported.status())) break;
    imported = ImportWith(model, inputs, known);
  }
  return imported;
}

std::map<std::string, Tensor> GivenInputs(const OnnxModel& model, const Graph& graph,
                                          const std::vector<Tensor>& inputs) {
  std::map<std::string, Tensor> given;
  for (const ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    const ValueInfo& info = graph.value(id);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (model.inputs()[i].name == info.name) given[info.name] = inputs[i];
    }
    if (given.count(info.name) == 0 && info.type == TensorType{DType::kI64, {3}}) {
      given[info.name] = Tensor(info.type);
    }
  }
  return given;
}

CaseResult RunOnnxCase(const OnnxCase& onnx_case) {
  CaseResult result;
  onnx::ModelProto proto;
  if (const Status status = ReadOnnxProto(onnx_case.model, proto); !status.ok()) {
    return Refused(result, status);
  }
  result.op = OperatorOfCase(onnx_case, proto);
  result.standard = IsStandard(proto);
  result.text = NotHeld(proto);
  result.outcome = Outcome::kNotHeld;
  if (!result.text.empty()) return result;
  const Result<OnnxModel> model = OnnxModel::Open(onnx_case.model);
  if (!model.ok()) return Refused(result, model.status());
  const Result<OnnxCaseTensors> tensors = ReadOnnxTensors(onnx_case, proto);
  if (!tensors.ok()) return Refused(result, tensors.status());
  const Result<OnnxImport> imported = ImportForInputs(*model, tensors->inputs);
  if (!imported.ok()) return Refused(result, imported.status());
  const Result<std::vector<Tensor>> values =
      EvaluateGraph(imported->graph, GivenInputs(*model, imported->graph, tensors->inputs));
  if (!values.ok()) return Refused(result, values.status());
  result.text = CompareOutputs(imported->graph, *values, tensors->outputs, onnx_case);
  result.outcome = result.text.empty() ? Outcome::kPassed : Outcome::kFailed;
  return result;
}

}  // namespace ridge

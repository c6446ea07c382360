#include "ridge/use/export_model_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/learn/random_inputs.h"
#include "ridge/onnx/import/import.h"
#include "ridge/train/loop/run_once.h"

namespace ridge {
namespace {

// The same operations in another order: some roundings of the element type.
double ToleranceOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 1e-12;
    case DType::kF32:
      return 1e-5;
    case DType::kF16:
      return 2e-3;
    case DType::kBF16:
      return 2e-2;
    default:
      return 0;
  }
}

ExportDifference Compare(const std::string& name, const Tensor& model, const Tensor& file,
                         std::optional<double> tolerance) {
  ExportDifference result{.output = name, .type = TypeToString(model.type())};
  const DType dtype = model.type().dtype;
  result.tolerance = IsFloat(dtype) ? tolerance.value_or(ToleranceOf(dtype)) : 0;
  double scale = 0;
  for (int64_t i = 0; i < model.elements(); ++i) {
    const double a = model.at(i), b = file.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      if (std::isfinite(a)) scale = std::max(scale, std::abs(a));
      continue;
    }
    const double difference = std::abs(a - b);
    const bool finite = std::isfinite(difference);
    result.largest =
        finite ? std::max(result.largest, difference) : std::numeric_limits<double>::infinity();
    if (std::isfinite(a)) scale = std::max(scale, std::abs(a));
  }
  result.relative = result.largest == 0 ? 0 : result.largest / scale;
  return result;
}

void Merge(ExportDifference next, std::vector<ExportDifference>& all) {
  for (ExportDifference& known : all) {
    if (known.output != next.output) continue;
    if (next.relative > known.relative) known = std::move(next);
    return;
  }
  all.push_back(std::move(next));
}

Status WrongFile(const std::string& path, const std::string& text) {
  return Status(ErrorCode::kInternal,
                fmt::format("{}: the file that was written is not the model: {}", path, text));
}

Result<Graph> ReadBack(const Graph& graph, const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Open(path));
  OnnxImportOptions options;
  const std::map<std::string, int64_t> bound = BoundDims(graph);
  for (const std::string& name : OpenOnnxDims(model, {})) {
    const auto found = bound.find(name);
    if (found == bound.end())
      return WrongFile(path, fmt::format("its dimension '{}' is new", name));
    options.dims.emplace(*found);
  }
  RIDGE_ASSIGN_OR_RETURN(OnnxImport imported, ImportOnnx(model, options));
  return std::move(imported.graph);
}

// Inputs that nothing reads may be missing on one side.
std::map<std::string, Tensor> InputsOf(const Graph& graph,
                                       const std::map<std::string, Tensor>& inputs) {
  std::map<std::string, Tensor> own;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    const auto found = inputs.find(graph.value(id).name);
    if (found != inputs.end()) own.insert(*found);
  }
  return own;
}

std::string DimsText(const Graph& graph) {
  std::vector<std::string> parts;
  for (const auto& [name, extent] : BoundDims(graph))
    parts.push_back(fmt::format("{}={}", name, extent));
  return parts.empty() ? "fixed extents" : fmt::format("{}", fmt::join(parts, " "));
}

}  // namespace

std::map<std::string, int64_t> BoundDims(const Graph& graph) {
  std::map<std::string, int64_t> dims;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    const ValueInfo& info = graph.value(id);
    for (size_t d = 0; d < info.dim_names.size() && d < info.type.dims.size(); ++d) {
      if (!info.dim_names[d].empty()) dims.emplace(info.dim_names[d], info.type.dims[d]);
    }
  }
  return dims;
}

Status CompareWithFile(const Graph& graph, const std::map<std::string, Tensor>& values,
                       const std::string& path, const ExportRequest& request,
                       const Machine& machine, ExportReport& report) {
  RIDGE_ASSIGN_OR_RETURN(const Graph read, ReadBack(graph, path));
  const std::map<std::string, Tensor> inputs = RandomInputs(graph, request.seed);
  std::map<std::string, Tensor> given = values;
  given.insert(inputs.begin(), inputs.end());
  RIDGE_ASSIGN_OR_RETURN(const auto ours, RunGraph(graph, given, request.seed, machine));
  RIDGE_ASSIGN_OR_RETURN(const auto files,
                         RunGraph(read, InputsOf(read, inputs), request.seed, machine));
  if (ours.size() != files.size()) {
    return WrongFile(path, fmt::format("{} outputs; {} are expected", files.size(), ours.size()));
  }
  for (size_t i = 0; i < ours.size(); ++i) {
    const auto& [name, tensor] = ours[i];
    if (files[i].first != name || files[i].second.type() != tensor.type()) {
      return WrongFile(path, fmt::format("output '{}' is {} there and '{}' {} here", files[i].first,
                                         TypeToString(files[i].second.type()), name,
                                         TypeToString(tensor.type())));
    }
    Merge(Compare(name, tensor, files[i].second, request.tolerance), report.outputs);
  }
  report.checked_at.push_back(DimsText(graph));
  return Status();
}

}  // namespace ridge

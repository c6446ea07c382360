#include "ridge/train/store/value_histograms.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "ridge/core/process.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/dynamic_code.h"

namespace ridge {
namespace {

constexpr int64_t kMostElements = 8192;
constexpr double kShareOfTime = 0.02;
// Names of the optimizers' states that are means of gradients.
constexpr std::string_view kGradientMeans[] = {".m", ".momentum"};

// The parameter whose mean gradient `state` is; "" for other states.
std::string ParameterOf(const std::string& state, const std::vector<PersistentTensor>& parameters) {
  for (const std::string_view suffix : kGradientMeans) {
    if (!state.ends_with(suffix)) continue;
    const std::string name = state.substr(0, state.size() - suffix.size());
    const auto named = [&](const PersistentTensor& tensor) { return tensor.name == name; };
    if (std::any_of(parameters.begin(), parameters.end(), named)) return name;
  }
  return "";
}

std::optional<PersistentTensor> Find(const std::string& name,
                                     const std::vector<PersistentTensor>& tensors) {
  for (const PersistentTensor& tensor : tensors) {
    if (tensor.name == name) return tensor;
  }
  return std::nullopt;
}

// Every so many elements of a tensor.
Status TakeEvery(int64_t stride, const PersistentTensor& tensor, std::vector<double>& numbers) {
  const DType dtype = tensor.type.dtype;
  numbers.clear();
  int64_t before = 0, next = 0;  // elements
  return tensor.Read([&](const void* data, int64_t bytes) {
    const int64_t end = before + bytes / BytesPerElement(dtype);
    for (; next < end; next += stride) numbers.push_back(LoadAsDouble(dtype, data, next - before));
    before = end;
    return Status();
  });
}

}  // namespace

ValueHistograms::ValueHistograms(const CheckpointTensors& tensors) {
  for (const PersistentTensor& parameter : tensors.parameters)
    series_.push_back({"weights/" + parameter.name, parameter, parameter.name});
  for (const PersistentTensor& state : tensors.state) {
    const std::string parameter = ParameterOf(state.name, tensors.parameters);
    if (parameter.empty()) continue;
    series_.push_back({"momentum/" + parameter, state, parameter, true,
                       Find(state.name + "_absmax", tensors.state)});
  }
}

bool ValueHistograms::Due(double now_s) const {
  return cost_s_ <= kShareOfTime * (now_s - written_s_);
}

Status ValueHistograms::TakeElements(const Series& series) {
  const int64_t elements = series.tensor.type.elements();
  const int64_t stride = std::max<int64_t>(1, CeilDiv(elements, kMostElements));
  RIDGE_RETURN_IF_ERROR(TakeEvery(stride, series.tensor, numbers_));
  if (!series.absmax) return Status();
  RIDGE_RETURN_IF_ERROR(TakeEvery(1, *series.absmax, absmax_));
  for (size_t k = 0; k < numbers_.size(); ++k) {
    const auto block = static_cast<int64_t>(k) * stride / kCodeBlock;
    numbers_[k] = DynamicValue(CodeSigns::kSigned, static_cast<int>(numbers_[k])) *
                  absmax_[static_cast<size_t>(block)];
  }
  return Status();
}

// Of the numbers that are at hand; parameters come before their gradients.
void ValueHistograms::TakeNorm(const Series& series, LayerReport& report) const {
  if (series.tensor.type.rank() < 2) return;
  double sum = 0;
  for (const double number : numbers_) sum += number * number;
  const double rms = std::sqrt(sum / static_cast<double>(numbers_.size()));
  if (!series.is_gradient) {
    report.layers.push_back({series.parameter, rms, std::nullopt});
    return;
  }
  const auto layer =
      std::find_if(report.layers.begin(), report.layers.end(),
                   [&](const LayerNorms& norms) { return norms.name == series.parameter; });
  if (layer != report.layers.end()) layer->gradient_rms = rms;
}

void ValueHistograms::Write(int64_t step, RunLog& log) {
  const double begin = MonotonicSeconds();
  LayerReport report{step, {}};
  for (const Series& series : series_) {
    const Status taken = TakeElements(series);
    if (!taken.ok()) return log.Warn(taken);
    log.AddHistogram(series.tag, step, numbers_);
    TakeNorm(series, report);
  }
  if (!report.layers.empty()) log.AddLayers(report);
  written_s_ = MonotonicSeconds();
  cost_s_ = written_s_ - begin;
}

}  // namespace ridge

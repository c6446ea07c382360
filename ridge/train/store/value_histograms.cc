#include "ridge/train/store/value_histograms.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "ridge/core/process.h"
#include "ridge/core/rounding.h"

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

void TakeElements(const PersistentTensor& tensor, const void* data, std::vector<double>& numbers) {
  const int64_t elements = tensor.type.elements();
  const int64_t stride = std::max<int64_t>(1, CeilDiv(elements, kMostElements));
  numbers.clear();
  for (int64_t i = 0; i < elements; i += stride)
    numbers.push_back(LoadAsDouble(tensor.type.dtype, data, i));
}

}  // namespace

ValueHistograms::ValueHistograms(const CheckpointTensors& tensors) {
  for (const PersistentTensor& parameter : tensors.parameters)
    series_.push_back({"weights/" + parameter.name, parameter, parameter.name});
  for (const PersistentTensor& state : tensors.state) {
    const std::string parameter = ParameterOf(state.name, tensors.parameters);
    if (!parameter.empty()) series_.push_back({"momentum/" + parameter, state, parameter, true});
  }
}

bool ValueHistograms::Due(double now_s) const {
  return cost_s_ <= kShareOfTime * (now_s - written_s_);
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
    const Result<const void*> data = series.tensor.Read();
    if (!data.ok()) return log.Warn(data.status());
    TakeElements(series.tensor, *data, numbers_);
    log.AddHistogram(series.tag, step, numbers_);
    TakeNorm(series, report);
  }
  if (!report.layers.empty()) log.AddLayers(report);
  written_s_ = MonotonicSeconds();
  cost_s_ = written_s_ - begin;
}

}  // namespace ridge

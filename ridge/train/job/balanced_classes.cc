#include "ridge/train/job/balanced_classes.h"

#include <fmt/format.h>

#include <numeric>

#include "ridge/core/tensor.h"

namespace ridge {
namespace {

// Samples by class.
Result<std::vector<int64_t>> CountLabels(const JobData& data, int field, int64_t classes) {
  const Source& source = *data.train;
  const TensorType& type = source.fields()[static_cast<size_t>(field)].type;
  std::vector<int64_t> counts(static_cast<size_t>(classes), 0);
  std::vector<char> scratch(static_cast<size_t>(source.scratch_bytes()));
  std::vector<char> labels(static_cast<size_t>(type.bytes()));
  for (int64_t sample = 0; sample < source.size(); ++sample) {
    const Status status = source.Read({sample}, field, scratch, labels.data());
    if (status.code() == ErrorCode::kInvalidData && data.bad_records->skips()) continue;
    RIDGE_RETURN_IF_ERROR(status);
    for (int64_t i = 0; i < type.elements(); ++i) {
      const auto label = static_cast<int64_t>(LoadAsDouble(type.dtype, labels.data(), i));
      if (label >= 0 && label < classes) ++counts[static_cast<size_t>(label)];
    }
  }
  return counts;
}

}  // namespace

Result<std::vector<double>> BalancedClassWeights(const JobData& data, const Graph& forward,
                                                 const ForwardInfo& facts) {
  const int64_t classes = forward.type(facts.logits).dims.back();
  const std::string& label = forward.value(facts.label).name;
  RIDGE_ASSIGN_OR_RETURN(const std::vector<FieldMap> maps,
                         MatchFields(data.train_spec, *data.train));
  size_t input = 0;
  while (data.train_spec.inputs[input].name != label) ++input;
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> counts,
                         CountLabels(data, maps[input].field, classes));
  const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  if (all == 0) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("--class-weights auto: {} has no label from 0 to {}",
                              data.train->name(), classes - 1));
  }
  std::vector<double> weights;
  for (const int64_t count : counts) {
    const double even = static_cast<double>(all) / static_cast<double>(classes);
    weights.push_back(count == 0 ? 0 : even / static_cast<double>(count));
  }
  return weights;
}

}  // namespace ridge

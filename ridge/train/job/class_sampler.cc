#include "ridge/train/job/class_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "ridge/core/split.h"
#include "ridge/core/tensor.h"
#include "ridge/data/group_source.h"

namespace ridge {
namespace {

Status NoClasses(const Graph& forward) {
  return InvalidArgument(fmt::format(
      "--sampler draws samples by their class; {} has not one class a sample as its label. hint: "
      "leave --sampler out",
      forward.name));
}

// The class of each sample.
Result<std::vector<int32_t>> ReadLabels(const JobData& data, int field, int64_t classes) {
  const Source& source = *data.train;
  if (source.size() > std::numeric_limits<uint32_t>::max()) {
    return InvalidArgument(fmt::format("--sampler: {} has {} samples; 2^32 - 1 are possible",
                                       source.name(), source.size()));
  }
  const TensorType& type = source.fields()[static_cast<size_t>(field)].type;
  std::vector<int32_t> labels(static_cast<size_t>(source.size()), GroupSource::kNoGroup);
  std::vector<char> scratch(static_cast<size_t>(source.scratch_bytes()));
  std::vector<char> value(static_cast<size_t>(type.bytes()));
  for (int64_t sample = 0; sample < source.size(); ++sample) {
    const Status read = source.Read({sample}, field, scratch, value.data());
    if (read.code() == ErrorCode::kInvalidData && data.bad_records->skips()) continue;
    RIDGE_RETURN_IF_ERROR(read);
    const double label = LoadAsDouble(type.dtype, value.data(), 0);
    if (label >= 0 && label < static_cast<double>(classes))
      labels[static_cast<size_t>(sample)] = static_cast<int32_t>(label);
  }
  return labels;
}

std::string Range(int64_t least, int64_t most) {
  return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
}

std::string NoteOf(const GroupSource& source) {
  const auto range = [&](int64_t GroupSource::Group::*of) {
    const auto [least, most] =
        std::minmax_element(source.groups().begin(), source.groups().end(),
                            [&](const auto& a, const auto& b) { return a.*of < b.*of; });
    return Range((*least).*of, (*most).*of);
  };
  return fmt::format(
      "--sampler: of the {} samples of an epoch {} are drawn of each of {} classes, "
      "which have {}",
      source.size(), range(&GroupSource::Group::count), source.groups().size(),
      range(&GroupSource::Group::samples));
}

// The field of the label, where it is one class a sample.
Result<int> LabelField(const Graph& forward, const ForwardInfo& facts, const JobData& data) {
  if (facts.logits == kNoValue || forward.type(facts.label).rank() != 1) return NoClasses(forward);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<FieldMap> maps,
                         MatchFields(data.train_spec, *data.train));
  const std::string& label = forward.value(facts.label).name;
  for (size_t i = 0; i < maps.size(); ++i) {
    const TensorType& type = data.train->fields()[static_cast<size_t>(maps[i].field)].type;
    if (data.train_spec.inputs[i].name != label) continue;
    if (IsInteger(type.dtype) && type.elements() == 1) return maps[i].field;
  }
  return NoClasses(forward);
}

}  // namespace

Result<std::vector<double>> ParseSampler(const std::string& sampler) {
  std::vector<double> shares;
  if (sampler == "balanced") return shares;
  double sum = 0;
  for (const std::string_view text : SplitAt(sampler, ',')) {
    double share = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), share);
    if (error != std::errc() || rest != text.data() + text.size() || !std::isfinite(share) ||
        share < 0) {
      return InvalidArgument(fmt::format(
          "--sampler is '{}'; it must be balanced, or shares of at least 0 such as 1,2.5,1",
          sampler));
    }
    shares.push_back(share);
    sum += share;
  }
  if (sum > 0 && std::isfinite(sum)) return shares;
  return InvalidArgument(
      fmt::format("--sampler is '{}'; the sum of its shares must be above 0", sampler));
}

Status SampleTraining(const TrainOptions& options, const Graph& forward, const ForwardInfo& facts,
                      JobData& data) {
  if (options.sampler.empty()) return Status();
  RIDGE_ASSIGN_OR_RETURN(std::vector<double> shares, ParseSampler(options.sampler));
  RIDGE_ASSIGN_OR_RETURN(const int field, LabelField(forward, facts, data));
  const int64_t classes = forward.type(facts.logits).dims.back();
  if (shares.empty()) shares.assign(static_cast<size_t>(classes), 1);
  if (static_cast<int64_t>(shares.size()) != classes) {
    return InvalidArgument(fmt::format("--sampler has {} shares; {} has {} classes", shares.size(),
                                       forward.name, classes));
  }
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int32_t> labels, ReadLabels(data, field, classes));
  const auto sampled =
      GroupSource::Create(data.train, labels, shares, options.seed, {data.validation, data.test});
  if (sampled == nullptr) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("--sampler: {} has no sample of a class whose share is above 0",
                              data.train->name()));
  }
  data.notes.push_back(NoteOf(*sampled));
  data.train = sampled;
  return Status();
}

}  // namespace ridge

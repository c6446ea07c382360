#include "ridge/data/mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "ridge/data/mixture_source.h"

namespace ridge {
namespace {

// Cut at commas that stand in no braces.
std::vector<std::string> Pieces(const std::string& text) {
  std::vector<std::string> pieces(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ',' && depth <= 0)
      pieces.emplace_back();
    else
      pieces.back() += c;
  }
  return pieces;
}

// Takes "*3" off the end; not a number: NaN.
double TakeWeight(std::string& piece) {
  const size_t star = piece.rfind('*');
  if (star == std::string::npos) return 1;
  const std::string text = piece.substr(star + 1);
  double weight = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, weight);
  if (text.empty() || error != std::errc() || rest != end) return 1;  // a pattern: "*.csv"
  piece.resize(star);
  return weight;
}

std::string FieldsText(const Source& source) {
  std::string text;
  for (const Field& field : source.fields())
    text += (text.empty() ? "" : ", ") + field.name + " " + TypeToString(field.type);
  return text;
}

bool SameFields(const Source& a, const Source& b) {
  return std::equal(a.fields().begin(), a.fields().end(), b.fields().begin(), b.fields().end(),
                    [](const Field& x, const Field& y) {
                      return x.name == y.name && x.type == y.type &&
                             x.normalization == y.normalization;
                    });
}

Status CheckFields(const Source& first, const Source& other) {
  if (SameFields(first, other)) return Status();
  return Status(ErrorCode::kInvalidData,
                fmt::format("{} has {}; {} has {}: sources of one mixture have the same fields",
                            first.name(), FieldsText(first), other.name(), FieldsText(other)));
}

// Holds a part out where the kind of data does not do it itself.
Status HoldOut(const DataOptions& options, DataSplits& splits) {
  if (options.hold_out <= 0 || splits.held_out) return Status();
  RIDGE_ASSIGN_OR_RETURN(const ValidationSplit split,
                         SplitValidation(splits.train, options.hold_out, options.seed));
  splits.train = split.train;
  splits.validation = split.validation;
  splits.held_out = true;
  return Status();
}

// All samples of the parts that have such a set; null when none has.  Their memory is that of the
// training sets where they are held out of these.
SourcePtr Joined(const std::string& name, const std::vector<DataSplits>& opened,
                 SourcePtr DataSplits::*set) {
  std::vector<MixturePart> parts;
  std::vector<SourcePtr> training;
  for (const DataSplits& splits : opened) {
    training.push_back(splits.train);
    if (splits.*set != nullptr) parts.push_back({splits.*set, (splits.*set)->size()});
  }
  if (parts.empty()) return nullptr;
  return std::make_shared<MixtureSource>(name, std::move(parts), /*seed=*/std::nullopt,
                                         std::move(training));
}

Result<std::vector<DataSplits>> OpenParts(const MixtureSpec& mixture, const DataOptions& options) {
  std::vector<DataSplits> opened;
  DataOptions of_part = options;
  for (const MixtureSpec::Part& part : mixture.parts) {
    if (!(part.weight > 0) || !std::isfinite(part.weight)) {
      return InvalidArgument(
          fmt::format("data '{}': its weight is {}; it must be above 0", part.spec, part.weight));
    }
    Result<DataSplits> one = OpenData(part.spec, of_part);
    if (!one.ok() && !opened.empty()) {
      return Status(one.status().code(), fmt::format("{} (mixed with {})", one.status().message(),
                                                     mixture.parts.front().spec));
    }
    RIDGE_ASSIGN_OR_RETURN(DataSplits splits, std::move(one));
    RIDGE_RETURN_IF_ERROR(HoldOut(of_part, splits));
    if (opened.empty() && of_part.preprocessing == nullptr)
      of_part.preprocessing = splits.preprocessing;
    opened.push_back(std::move(splits));
    for (const auto set : {&DataSplits::train, &DataSplits::validation, &DataSplits::test}) {
      if (opened.back().*set != nullptr)
        RIDGE_RETURN_IF_ERROR(CheckFields(*opened.front().train, *(opened.back().*set)));
    }
  }
  return opened;
}

// The most that a source has of it.
void TakeMost(const std::vector<ModelSize>& sizes, std::vector<ModelSize>& most) {
  for (ModelSize& size : most) {
    for (const ModelSize& other : sizes)
      if (other.name == size.name) size.value = std::max(size.value, other.value);
  }
}

}  // namespace

std::optional<MixtureSpec> ParseMixture(const std::string& text,
                                        bool (*is_spec)(const std::string&)) {
  std::error_code ignored;
  if (text.find("schema=") != std::string::npos || std::filesystem::exists(text, ignored))
    return std::nullopt;
  MixtureSpec mixture;
  for (std::string& piece : Pieces(text)) {
    std::string without = piece;
    const double weight = TakeWeight(without);
    if (is_spec(without))
      mixture.parts.push_back({without, weight});
    else if (mixture.parts.empty())
      return std::nullopt;
    else
      mixture.parts.back().spec += "," + piece;
  }
  if (mixture.parts.size() < 2) return std::nullopt;
  return mixture;
}

Result<DataSplits> OpenMixture(const std::string& name, const MixtureSpec& mixture,
                               const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<DataSplits> opened, OpenParts(mixture, options));
  int64_t samples = 0;
  std::vector<double> weights;
  for (const DataSplits& splits : opened) samples += splits.train->size();
  for (const MixtureSpec::Part& part : mixture.parts) weights.push_back(part.weight);
  const std::vector<int64_t> counts = ShareOut(samples, weights);
  DataSplits splits = opened.front();
  std::vector<MixturePart> parts;
  for (size_t i = 0; i < opened.size(); ++i) {
    parts.push_back({opened[i].train, counts[i]});
    TakeMost(opened[i].sizes, splits.sizes);
    if (i > 0)
      splits.notes.insert(splits.notes.end(), opened[i].notes.begin(), opened[i].notes.end());
    splits.notes.push_back(fmt::format("{}: {} of {} samples of an epoch; it has {}",
                                       opened[i].train->name(), counts[i], samples,
                                       opened[i].train->size()));
  }
  splits.train = std::make_shared<MixtureSource>(name, std::move(parts), options.seed);
  splits.validation = Joined(name, opened, &DataSplits::validation);
  splits.test = Joined(name, opened, &DataSplits::test);
  splits.held_out = options.hold_out > 0;
  return splits;
}

Result<std::optional<DataFacts>> MixtureFacts(const std::string& name, const MixtureSpec& mixture,
                                              const DataOptions& options) {
  std::optional<DataFacts> all;
  for (size_t i = 0; i < mixture.parts.size(); ++i) {
    const std::string& spec = mixture.parts[i].spec;
    RIDGE_ASSIGN_OR_RETURN(const std::optional<DataFacts> facts, FactsBeforeModel(spec, options));
    if (i > 0 && facts.has_value() != all.has_value()) {
      return InvalidArgument(
          fmt::format("data '{}': {} and {} cannot be mixed: one of them adapts "
                      "to the model",
                      name, mixture.parts.front().spec, spec));
    }
    if (i == 0) all = facts;
    if (facts) TakeMost(facts->sizes, all->sizes);
  }
  return all;
}

}  // namespace ridge

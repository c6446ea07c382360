#include "ridge/data/container/label_column.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace ridge {
namespace {

constexpr size_t kMostTexts = size_t{1} << 20;

std::optional<int64_t> WholeNumber(const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end ? std::optional(value) : std::nullopt;
}

}  // namespace

Status LabelColumn::Add(const std::string& text) {
  if (text.empty()) return Status(ErrorCode::kInvalidData, "its label is empty");
  const auto found = ids_.try_emplace(text, static_cast<int64_t>(ids_.size())).first;
  if (ids_.size() > kMostTexts) {
    return Status(
        ErrorCode::kInvalidData,
        fmt::format("more than {} samples have labels of their own: are they labels?", kMostTexts));
  }
  values_.push_back(found->second);
  return Status();
}

// What each id stands for.
Result<std::vector<int64_t>> LabelColumn::Numbers(const std::vector<std::string>& names) const {
  std::vector<int64_t> numbers(ids_.size());
  for (const auto& [text, id] : ids_) {
    const auto found = std::find(names.begin(), names.end(), text);
    if (!names.empty() && found == names.end()) {
      return Status(ErrorCode::kInvalidData, fmt::format("label '{}' is none of the classes: {}",
                                                         text, fmt::join(names, ", ")));
    }
    numbers[static_cast<size_t>(id)] = names.empty() ? *WholeNumber(text) : found - names.begin();
  }
  return numbers;
}

Result<LabelColumn::Labels> LabelColumn::Finish(const std::vector<std::string>& known) {
  Labels labels;
  labels.names = known;
  const bool numbers = std::all_of(ids_.begin(), ids_.end(), [](const auto& entry) {
    return WholeNumber(entry.first).has_value();
  });
  if (known.empty() && !numbers) {
    for (const auto& [text, id] : ids_) labels.names.push_back(text);
  }
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> of_id, Numbers(labels.names));
  labels.values = std::move(values_);
  for (int64_t& value : labels.values) value = of_id[static_cast<size_t>(value)];
  return labels;
}

}  // namespace ridge

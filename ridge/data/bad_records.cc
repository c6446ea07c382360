#include "ridge/data/bad_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ridge {
namespace {

constexpr std::string_view kSkip = "skip:";

template <typename Number>
bool ParseWhole(std::string_view text, Number& number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest == text.data() + text.size();
}

Status WrongPolicy() {
  return InvalidArgument(
      "it must be fail, skip:N with a whole number, or skip:P% with a number from 0 to 100");
}

}  // namespace

Result<BadRecordsPolicy> BadRecordsPolicy::Parse(const std::string& text) {
  BadRecordsPolicy policy;
  if (text == "fail") return policy;
  if (!text.starts_with(kSkip)) return WrongPolicy();
  policy.skip = true;
  std::string_view number = std::string_view(text).substr(kSkip.size());
  if (number.ends_with('%')) {
    number.remove_suffix(1);
    if (!ParseWhole(number, policy.percent)) return WrongPolicy();
    return policy.percent >= 0 && policy.percent <= 100 ? Result<BadRecordsPolicy>(policy)
                                                        : WrongPolicy();
  }
  int64_t most = 0;
  if (!ParseWhole(number, most) || most < 0) return WrongPolicy();
  policy.most = most;
  return policy;
}

int64_t BadRecordsPolicy::Limit(int64_t samples) const {
  if (!skip) return 0;
  return most ? *most : static_cast<int64_t>(percent / 100 * static_cast<double>(samples));
}

Status BadRecords::Add(const std::string& origin, const std::string& message) {
  RIDGE_CHECK(skips(), "bad records are skipped");
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!origins_.insert(origin).second) return Status();
  const std::string prefix = origin + ": ";
  const bool begins = message.starts_with(prefix);
  records_.push_back({origin, begins ? message.substr(prefix.size()) : message});
  return Check();
}

Status BadRecords::SetSamples(int64_t training_samples) {
  const std::lock_guard<std::mutex> lock(mutex_);
  limit_ = policy_.Limit(training_samples);
  return skips() ? Check() : Status();
}

Status BadRecords::Check() const {
  constexpr size_t kShown = 3;
  if (!limit_ || static_cast<int64_t>(records_.size()) <= *limit_) return Status();
  std::string text = fmt::format(
      "{} cannot be read, --bad-records allows {}:",
      records_.size() == 1 ? "1 record" : fmt::format("{} records", records_.size()), *limit_);
  for (size_t i = 0; i < std::min(kShown, records_.size()); ++i)
    text += fmt::format("\n  {}: {}", records_[i].origin, records_[i].reason);
  if (records_.size() > kShown) text += fmt::format("\n  and {} more", records_.size() - kShown);
  return Status(ErrorCode::kInvalidData, text);
}

int64_t BadRecords::count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(records_.size());
}

std::vector<BadRecord> BadRecords::List() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return records_;
}

}  // namespace ridge

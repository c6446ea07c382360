// Of YAML only what data.yaml is written in is read: keys at the left edge, and one list or map.
#include "ridge/data/yolo_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "ridge/core/split.h"
#include "ridge/data/csv_cells.h"
#include "ridge/data/text_records.h"

namespace ridge {
namespace {

Status BadLine(int64_t line, const std::string& reason) {
  return Status(ErrorCode::kInvalidData, fmt::format("{}: {}", line, reason));
}

std::string ToUtf8(std::string_view text) {
  std::string copy(text);
  MakeUtf8(copy);
  return copy;
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < line.size();) {
    const size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

template <typename T>
std::optional<T> ParseAs(std::string_view text) {
  T value{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

// ---- labels

constexpr size_t kMostWords = 1 + 2 * 65536;

// A class is written as a whole number, by some programs as "0.0".
std::optional<int64_t> ParseClass(std::string_view text) {
  const auto number = ParseAs<double>(text);
  if (!number || !(*number >= 0 && *number < static_cast<double>(kMostObjectClasses)) ||
      *number != std::floor(*number))
    return std::nullopt;
  return static_cast<int64_t>(*number);
}

float Part(double x) { return static_cast<float>(std::clamp(x, 0.0, 1.0)); }

ObjectBox BoxOf(const std::vector<double>& numbers) {
  double x1 = numbers[0], y1 = numbers[1], x2 = x1, y2 = y1;
  if (numbers.size() == 4) {
    const double w = numbers[2] / 2, h = numbers[3] / 2;
    return {Part(x1 - w), Part(y1 - h), Part(x1 + w), Part(y1 + h)};
  }
  for (size_t i = 2; i < numbers.size(); i += 2) {
    x1 = std::min(x1, numbers[i]), x2 = std::max(x2, numbers[i]);
    y1 = std::min(y1, numbers[i + 1]), y2 = std::max(y2, numbers[i + 1]);
  }
  return {Part(x1), Part(y1), Part(x2), Part(y2)};
}

Result<ObjectBox> ParseLabel(std::string_view line, int64_t number) {
  constexpr double kOut = 0.01;
  const std::vector<std::string_view> words = Words(line);
  const bool outline = words.size() >= 7 && words.size() % 2 == 1;
  if ((words.size() != 5 && !outline) || words.size() > kMostWords) {
    return BadLine(number, fmt::format("has {} words; it must be a class and 4 numbers, or a class "
                                       "and the 3 or more points of an outline",
                                       words.size()));
  }
  const auto object_class = ParseClass(words[0]);
  if (!object_class) {
    return BadLine(number, fmt::format("the class is '{}'; it must be a whole number from 0 to {}",
                                       ToUtf8(words[0]), kMostObjectClasses - 1));
  }
  std::vector<double> numbers;
  for (size_t i = 1; i < words.size(); ++i) {
    const auto value = ParseAs<double>(words[i]);
    if (!value || !(*value >= -kOut && *value <= 1 + kOut)) {
      return BadLine(number, fmt::format("'{}' must be a number from 0 to 1, a part of the picture",
                                         ToUtf8(words[i])));
    }
    numbers.push_back(*value);
  }
  ObjectBox box = BoxOf(numbers);
  box.object_class = *object_class;
  return box;
}

// ---- names

class NamesReader {
 public:
  explicit NamesReader(std::string_view text) : lines_(SplitAt(text, '\n')) {}

  Result<std::vector<std::string>> Read() {
    constexpr std::string_view kKey = "names:";
    while (at_ < lines_.size() && !lines_[at_].starts_with(kKey)) ++at_;
    if (at_ == lines_.size()) return std::vector<std::string>();
    const std::string_view rest = Trimmed(WithoutComment(lines_[at_].substr(kKey.size())));
    if (rest.starts_with('[') || rest.starts_with('{')) {
      RIDGE_RETURN_IF_ERROR(ReadBrackets(rest));
    } else if (rest.empty()) {
      RIDGE_RETURN_IF_ERROR(ReadLines());
    } else {
      return Bad("names must be a list, or a map of numbers to names");
    }
    return Dense();
  }

 private:
  Status Bad(const std::string& reason) const {
    return BadLine(static_cast<int64_t>(std::min(at_ + 1, lines_.size())), reason);
  }

  static std::string_view WithoutComment(std::string_view line) {
    char quote = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      if (quote != 0) {
        quote = line[i] == quote ? '\0' : quote;
      } else if (line[i] == '"' || line[i] == '\'') {
        quote = line[i];
      } else if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
        return line.substr(0, i);
      }
    }
    return line;
  }

  // [a, 'b'] or {0: a, 1: b}, maybe over several lines.
  Status ReadBrackets(std::string_view first) {
    const bool map = first[0] == '{';
    const char close = map ? '}' : ']';
    std::string item;
    char quote = 0;
    std::string_view line = first.substr(1);
    for (;;) {
      for (const char c : line) {
        if (quote == 0 && (c == ',' || c == close)) {
          RIDGE_RETURN_IF_ERROR(TakeItem(item, map, c == close));
          item.clear();
          if (c == close) return Status();
          continue;
        }
        if (quote != 0)
          quote = c == quote ? '\0' : quote;
        else if (c == '"' || c == '\'')
          quote = c;
        item.push_back(c);
      }
      item.push_back(' ');
      if (++at_ >= lines_.size()) return Bad(fmt::format("names lack their '{}'", close));
      line = WithoutComment(lines_[at_]);
    }
  }

  // The last item of a bracket may be empty: "[a, b,]".
  Status TakeItem(std::string_view item, bool map, bool last) {
    item = Trimmed(item);
    if (item.empty() && last) return Status();
    return map ? TakePair(item) : Take(next_, item);
  }

  // "- a" or "0: a", a line each.
  Status ReadLines() {
    for (++at_; at_ < lines_.size(); ++at_) {
      const std::string_view line = WithoutComment(lines_[at_]);
      const std::string_view item = Trimmed(line);
      if (item.empty()) continue;
      const bool listed = item.starts_with("- ");
      if (!listed && line[0] != ' ' && line[0] != '\t') return Status();
      RIDGE_RETURN_IF_ERROR(listed ? Take(next_, Trimmed(item.substr(2))) : TakePair(item));
    }
    return Status();
  }

  Status TakePair(std::string_view item) {
    const size_t colon = item.find(':');
    const auto number = ParseAs<int64_t>(Trimmed(item.substr(0, colon)));
    if (colon == std::string_view::npos || !number)
      return Bad(fmt::format("'{}' must be NUMBER: NAME", ToUtf8(item)));
    return Take(*number, Trimmed(item.substr(colon + 1)));
  }

  Status Take(int64_t number, std::string_view name) {
    const bool quoted =
        name.size() >= 2 && (name[0] == '"' || name[0] == '\'') && name.back() == name[0];
    if (quoted) name = name.substr(1, name.size() - 2);
    if (number < 0 || number >= kMostObjectClasses)
      return Bad(fmt::format("class {}; it must be from 0 to {}", number, kMostObjectClasses - 1));
    if (name.empty()) return Bad(fmt::format("class {} has no name", number));
    if (!names_.emplace(number, ToUtf8(name)).second)
      return Bad(fmt::format("class {} comes twice", number));
    next_ = number + 1;
    return Status();
  }

  Result<std::vector<std::string>> Dense() const {
    std::vector<std::string> names;
    for (const auto& [number, name] : names_) {
      if (number != static_cast<int64_t>(names.size()))
        return Bad(fmt::format("class {} has no name, and class {} has", names.size(), number));
      names.push_back(name);
    }
    return names;
  }

  const std::vector<std::string_view> lines_;
  size_t at_ = 0;
  int64_t next_ = 0;
  std::map<int64_t, std::string> names_;
};

}  // namespace

Result<std::vector<ObjectBox>> ParseYoloLabels(std::string_view text) {
  std::vector<ObjectBox> boxes;
  int64_t number = 0;
  for (const std::string_view line : SplitAt(text, '\n')) {
    ++number;
    if (Trimmed(line).empty()) continue;
    if (static_cast<int64_t>(boxes.size()) == kMostBoxes)
      return BadLine(number, fmt::format("is more than {} objects", kMostBoxes));
    RIDGE_ASSIGN_OR_RETURN(const ObjectBox box, ParseLabel(line, number));
    if (box.x2 > box.x1 && box.y2 > box.y1) boxes.push_back(box);
  }
  return boxes;
}

Result<std::vector<std::string>> ParseYoloNames(std::string_view text) {
  return NamesReader(text).Read();
}

}  // namespace ridge

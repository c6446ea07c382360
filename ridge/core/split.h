// Text cut at a separator, and without what surrounds it.
#pragma once
#include <algorithm>
#include <string_view>
#include <vector>

namespace ridge {

// The parts between separators, one more than there are of them; they point into `text`.
inline std::vector<std::string_view> SplitAt(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

inline constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";  // of ASCII

// Without these characters at both ends; points into `text`.
inline std::string_view Trimmed(std::string_view text, std::string_view blanks = kWhiteSpace) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

}  // namespace ridge

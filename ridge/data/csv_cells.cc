#include "ridge/data/csv_cells.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace ridge {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool SameWord(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return Lower(a) == b; });
}

template <size_t n>
bool IsOneOf(std::string_view text, const std::array<std::string_view, n>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return SameWord(text, word); });
}

std::optional<double> ParsePlain(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

// The digits at the front, taken off.
size_t TakeDigits(std::string_view& text) {
  size_t count = 0;
  while (count < text.size() && IsDigit(text[count])) ++count;
  text.remove_prefix(count);
  return count;
}

// Bytes of the UTF-8 character at the front; 0 when there is none.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Too long forms, surrogates and what lies beyond Unicode.
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  return lead == 0xF4 && byte(1) > 0x8F ? 0 : length;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

std::optional<double> ParseNumber(std::string_view text, bool decimal_comma) {
  if (!decimal_comma) return ParsePlain(text);
  if (text.find('.') != text.npos) return std::nullopt;
  std::string with_point(text);
  if (const size_t comma = with_point.find(','); comma != std::string::npos)
    with_point[comma] = '.';
  return ParsePlain(with_point);
}

bool IsMissing(std::string_view text) {
  static constexpr std::array<std::string_view, 6> kWords = {"", "na", "n/a", "nan", "null", "?"};
  return text.size() <= 4 && IsOneOf(text, kWords);
}

std::optional<double> ParseBoolean(std::string_view text) {
  if (SameWord(text, "true") || SameWord(text, "yes")) return 1;
  if (SameWord(text, "false") || SameWord(text, "no")) return 0;
  return std::nullopt;
}

bool IsDate(std::string_view text) {
  size_t digits[3] = {0, 0, 0};
  char mark = 0;
  for (size_t group = 0; group < 3; ++group) {
    digits[group] = TakeDigits(text);
    if (group == 2) break;
    if (text.empty() || (group == 1 && text[0] != mark)) return false;
    mark = text[0];
    text.remove_prefix(1);
  }
  if (mark != '-' && mark != '/' && mark != '.') return false;
  const auto is_short = [](size_t count) { return count == 1 || count == 2; };
  const bool year_first = digits[0] == 4 && is_short(digits[2]);
  const bool year_last = is_short(digits[0]) && (digits[2] == 4 || digits[2] == 2);
  if (!is_short(digits[1]) || !(year_first || year_last)) return false;
  return text.empty() || text[0] == ' ' || text[0] == 'T';
}

void MakeUtf8(std::string& text) {
  if (IsUtf8(text)) return;
  std::string result;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      result.push_back(c);
      continue;
    }
    result.push_back(static_cast<char>(0xC0 | (byte >> 6)));
    result.push_back(static_cast<char>(0x80 | (byte & 0x3F)));
  }
  text = std::move(result);
}

}  // namespace ridge

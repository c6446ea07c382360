// After serde_json's parser of numbers without its feature `float_roundtrip`.
#include "ridge/data/text/score_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

namespace ridge {
namespace {

constexpr int64_t kMostPower = 308;
constexpr int64_t kMostExponent = std::numeric_limits<int32_t>::max();

double PowerOfTen(int64_t exponent) {
  static const auto powers = [] {
    std::array<double, kMostPower + 1> table{};
    for (size_t i = 0; i < table.size(); ++i) {
      const std::string text = fmt::format("1e{}", i);
      std::from_chars(text.data(), text.data() + text.size(), table[i]);
    }
    return table;
  }();
  return powers[static_cast<size_t>(exponent)];
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// significand * 10^exponent
double FromParts(uint64_t significand, int64_t exponent) {
  auto value = static_cast<double>(significand);
  while (exponent < -kMostPower && value != 0) {
    value /= PowerOfTen(kMostPower);
    exponent += kMostPower;
  }
  if (value == 0) return value;
  if (exponent > kMostPower) return std::numeric_limits<double>::infinity();
  return exponent >= 0 ? value * PowerOfTen(exponent) : value / PowerOfTen(-exponent);
}

// "e-5" at the front.
int64_t ReadExponent(std::string_view text) {
  if (text.empty() || (text.front() != 'e' && text.front() != 'E')) return 0;
  text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int64_t exponent = 0;
  for (size_t i = 0; i < text.size() && IsDigit(text[i]); ++i)
    exponent = std::min(kMostExponent, exponent * 10 + (text[i] - '0'));
  return negative ? -exponent : exponent;
}

}  // namespace

double ReadScore(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  uint64_t significand = 0;
  int64_t exponent = 0;
  bool full = false, fraction = false;  // further digits do not fit; behind the point
  size_t at = 0;
  for (; at < text.size() && (IsDigit(text[at]) || text[at] == '.'); ++at) {
    if (text[at] == '.') {
      fraction = true;
      continue;
    }
    const auto digit = static_cast<uint64_t>(text[at] - '0');
    full = full || significand > (std::numeric_limits<uint64_t>::max() - digit) / 10;
    if (!full) significand = significand * 10 + digit;
    exponent += static_cast<int64_t>(full) - static_cast<int64_t>(fraction);
  }
  const double value = FromParts(significand, exponent + ReadExponent(text.substr(at)));
  return negative ? -value : value;
}

}  // namespace ridge

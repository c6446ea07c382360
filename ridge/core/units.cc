#include "ridge/core/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace ridge {
namespace {

// Three digits that count, for values below 10,000.
std::string ThreeDigits(double value) {
  const double size = std::fabs(value);
  if (size < 9.995) return fmt::format("{:.2f}", value);
  if (size < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

// The largest prefix that leaves a value of at least 1 after rounding.
std::string WithPrefix(double value, double step, const std::array<const char*, 7>& prefixes,
                       std::string_view unit) {
  size_t i = 0;
  while (i + 1 < prefixes.size() && std::fabs(value) >= step - 0.5) {
    value /= step;
    ++i;
  }
  return fmt::format("{} {}{}", ThreeDigits(value), prefixes[i], unit);
}

std::string NotFinite(double value) {
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

std::string ClockText(double seconds) {
  const auto total = static_cast<int64_t>(std::llround(seconds));
  if (total < 3600) return fmt::format("{} min {:02} s", total / 60, total % 60);
  const int64_t minutes = std::llround(seconds / 60);
  if (minutes < 48 * 60) return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
  const int64_t hours = std::llround(seconds / 3600);
  return fmt::format("{} d {:02} h", hours / 24, hours % 24);
}

struct SizeUnit {
  const char* name;  // small letters
  double bytes;
};
constexpr std::array<SizeUnit, 10> kSizeUnits = {{{"", 1},
                                                  {"b", 1},
                                                  {"kb", 1e3},
                                                  {"mb", 1e6},
                                                  {"gb", 1e9},
                                                  {"tb", 1e12},
                                                  {"kib", 0x1p10},
                                                  {"mib", 0x1p20},
                                                  {"gib", 0x1p30},
                                                  {"tib", 0x1p40}}};

Status BadSize(std::string_view text, std::string_view problem) {
  return Status(
      ErrorCode::kInvalidArgument,
      fmt::format("size '{}': {}; write 24GB (10^9), 24GiB (2^30) or plain bytes", text, problem));
}

// The unit after the number, in small letters.
std::string UnitOf(const char* begin, const char* end) {
  std::string unit;
  for (const char* p = begin; p != end; ++p) {
    const bool large = *p >= 'A' && *p <= 'Z';
    if (*p != ' ') unit.push_back(large ? static_cast<char>(*p - 'A' + 'a') : *p);
  }
  return unit;
}

}  // namespace

std::string FormatBytes(int64_t bytes) {
  if (bytes > -1024 && bytes < 1024) return fmt::format("{} B", bytes);
  static constexpr std::array<const char*, 7> kPrefixes = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  return WithPrefix(static_cast<double>(bytes), 1024, kPrefixes, "B");
}

std::string FormatSeconds(double seconds) {
  if (!std::isfinite(seconds)) return NotFinite(seconds);
  if (seconds < 0) return "-" + FormatSeconds(-seconds);
  if (seconds == 0) return "0 s";
  if (seconds < 9.995e-7) return fmt::format("{} ns", ThreeDigits(seconds * 1e9));
  if (seconds < 9.995e-4) return fmt::format("{} us", ThreeDigits(seconds * 1e6));
  if (seconds < 0.9995) return fmt::format("{} ms", ThreeDigits(seconds * 1e3));
  if (seconds < 99.95) return fmt::format("{} s", ThreeDigits(seconds));
  if (seconds > 1e15) return fmt::format("{:.2e} s", seconds);
  return ClockText(seconds);
}

std::string FormatInteger(int64_t value) {
  std::string digits = fmt::format("{}", value);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string FormatCount(double count) {
  if (!std::isfinite(count)) return NotFinite(count);
  const double size = std::fabs(count);
  if (size < 1e7) {
    if (size == std::floor(size) || size >= 100) return FormatInteger(std::llround(count));
    return ThreeDigits(count);
  }
  static constexpr std::array<const char*, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  return WithPrefix(count, 1000, kPrefixes, "");
}

std::string FormatCountOf(int64_t count, std::string_view noun) {
  const bool hisses = noun.ends_with('s') || noun.ends_with('x') || noun.ends_with("tch");
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : hisses ? "es" : "s");
}

std::string FormatPercent(double ratio) {
  if (!std::isfinite(ratio)) return NotFinite(ratio);
  const double percent = std::round(ratio * 1000) / 10;
  return fmt::format("{:.1f} %", percent == 0 ? 0.0 : percent);  // no "-0.0"
}

std::string FormatPercentChange(double ratio) {
  if (!std::isfinite(ratio)) return NotFinite(ratio);
  const double percent = std::round(ratio * 1000) / 10;
  return fmt::format("{:+.1f} %", percent == 0 ? 0.0 : percent);
}

std::string FormatRate(double per_second, std::string_view unit) {
  if (!std::isfinite(per_second)) return NotFinite(per_second);
  static constexpr std::array<const char*, 7> kPrefixes = {"", "k", "M", "G", "T", "P", "E"};
  return WithPrefix(per_second, 1000, kPrefixes, fmt::format("{}/s", unit));
}

Result<int64_t> ParseSize(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number)) return BadSize(text, "is not a number");
  if (std::signbit(number)) return BadSize(text, "is negative");
  const std::string unit = UnitOf(rest, end);
  const auto* found = std::find_if(kSizeUnits.begin(), kSizeUnits.end(),
                                   [&](const SizeUnit& u) { return unit == u.name; });
  if (found == kSizeUnits.end()) return BadSize(text, fmt::format("unknown unit '{}'", unit));
  int64_t whole = 0;  // plain integers stay exact above 2^53
  const auto [after, overflow] = std::from_chars(text.data(), end, whole);
  if (found->bytes == 1 && overflow == std::errc() && after == rest) return whole;
  const double bytes = number * found->bytes;
  if (bytes >= 0x1p63) return BadSize(text, "is over 2^63 bytes");
  return static_cast<int64_t>(std::floor(bytes));
}

}  // namespace ridge

#include "ridge/graph/base64.h"

#include <algorithm>
#include <array>

namespace ridge {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> MakeValues() {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<uint8_t>(kDigits[i])] = static_cast<int8_t>(i);
  }
  return values;
}

constexpr std::array<int8_t, 256> kValues = MakeValues();

}  // namespace

std::string EncodeBase64(std::span<const uint8_t> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (k < n ? bytes[i + k] : 0U);
    for (size_t k = 0; k < 4; ++k) {
      text += k <= n ? kDigits[word >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::vector<uint8_t>> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3);
  const size_t digits = text.size() - padding;
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t word = 0;
    for (size_t k = 0; k < 4; ++k) {
      const int value = i + k < digits ? kValues[static_cast<uint8_t>(text[i + k])] : 0;
      if (value < 0) return std::nullopt;
      word = word << 6 | static_cast<uint32_t>(value);
    }
    for (size_t k = 0; k < 3; ++k) bytes.push_back(static_cast<uint8_t>(word >> (16 - 8 * k)));
  }
  for (size_t k = 0; k < padding; ++k) {
    if (bytes.back() != 0) return std::nullopt;  // bits that no byte holds
    bytes.pop_back();
  }
  return bytes;
}

}  // namespace ridge

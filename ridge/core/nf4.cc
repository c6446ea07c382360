#include "ridge/core/nf4.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ridge/core/dtype.h"

namespace ridge {
namespace {

// QLoRA, appendix E.
constexpr std::array<float, 16> kValues = {-1.0F,
                                           -0.6961928009986877F,
                                           -0.5250730514526367F,
                                           -0.39491748809814453F,
                                           -0.28444138169288635F,
                                           -0.18477343022823334F,
                                           -0.09105003625154495F,
                                           0.0F,
                                           0.07958029955625534F,
                                           0.16093020141124725F,
                                           0.24611230194568634F,
                                           0.33791524171829224F,
                                           0.44070982933044434F,
                                           0.5626170039176941F,
                                           0.7229568362236023F,
                                           1.0F};
constexpr uint8_t kZeroCode = 7;

// Halfway between neighbours.
constexpr std::array<float, 15> Midpoints() {
  std::array<float, 15> between = {};
  for (size_t i = 0; i < between.size(); ++i) between[i] = (kValues[i] + kValues[i + 1]) / 2;
  return between;
}

uint8_t NearestCode(float x) {
  static constexpr std::array<float, 15> kBetween = Midpoints();
  int code = 0;
  for (const float between : kBetween) code += x > between ? 1 : 0;
  return static_cast<uint8_t>(code);
}

}  // namespace

std::span<const float, 16> Nf4Values() { return kValues; }

uint16_t Nf4Scale(std::span<const float> block) {
  float most = 0;
  for (const float x : block) {
    const float magnitude = std::fabs(x);
    if (!(magnitude <= most)) most = magnitude;
    if (std::isnan(most)) break;
  }
  return FloatToBF16(most);
}

void EncodeNf4(std::span<const float> block, uint16_t scale, uint8_t* codes) {
  const float width = BF16ToFloat(scale);
  const float inverse = width > 0 ? 1 / width : 0;
  for (size_t i = 0; i < block.size(); i += 2) {
    const uint8_t first = NearestCode(block[i] * inverse);
    const uint8_t second = i + 1 < block.size() ? NearestCode(block[i + 1] * inverse) : kZeroCode;
    codes[i / 2] = static_cast<uint8_t>(first << 4 | second);
  }
}

}  // namespace ridge

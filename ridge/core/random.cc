#include "ridge/core/random.h"

namespace ridge {

std::array<uint32_t, 4> Philox(uint64_t key, std::array<uint32_t, 4> c) {
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;  // the golden ratio and sqrt(3) - 1
    k1 += 0xBB67AE85;
  }
  return c;
}

std::array<uint32_t, 4> DrawBlock(const RandomKey& key, uint32_t sample, uint64_t block) {
  // The stream takes the key's upper half; seeds are folded so that both halves count.
  const uint32_t seed = static_cast<uint32_t>(key.seed) ^ static_cast<uint32_t>(key.seed >> 32);
  const uint64_t philox_key = (uint64_t{key.stream} << 32) | seed;
  return Philox(philox_key, {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                             sample, key.step});
}

uint32_t Draw(const RandomKey& key, uint32_t sample, uint64_t index) {
  return DrawBlock(key, sample, index / 4)[index % 4];
}

std::array<double, 4> DrawNormalBlock(const RandomKey& key, uint32_t sample, uint64_t block) {
  std::array<double, 4 * kDrawBlocks> numbers{};
  DrawNormals(key, sample, block, kDrawBlocks, numbers.data());
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

uint32_t StableHash(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return static_cast<uint32_t>(hash ^ (hash >> 32));
}

}  // namespace ridge

#include "tests/golden/counter.h"

#include <cmath>
#include <numeric>

namespace ridge {
namespace {

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;

uint64_t NameHash(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return hash;
}

uint64_t Bits(uint64_t hash, int64_t i) {
  uint64_t x = hash + (static_cast<uint64_t>(i) + 1) * kGolden;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return (x ^ (x >> 31)) >> 11;
}

}  // namespace

uint64_t CounterBits(const std::string& name, int64_t i) { return Bits(NameHash(name), i); }

std::vector<double> CounterUniform(const std::string& name, int64_t count) {
  const uint64_t hash = NameHash(name);
  std::vector<double> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = static_cast<double>(Bits(hash, i)) * 0x1p-53;
  return values;
}

std::vector<double> CounterWeight(const std::string& name, const Dims& dims) {
  const int64_t count = ElementCount(dims);
  std::vector<double> values = CounterUniform(name, count);
  if (dims.size() == 1 && name.ends_with(".weight")) {
    for (double& v : values) v = 0.75 + 0.5 * v;
    return values;
  }
  const int64_t fan_in = dims.size() > 1 ? count / dims[0] : 16;
  for (double& v : values) v = (2 * v - 1) / std::sqrt(static_cast<double>(fan_in));
  return values;
}

std::vector<int64_t> CounterPositions(int64_t count, int64_t wanted) {
  std::vector<int64_t> positions(static_cast<size_t>(std::min(count, wanted)));
  if (count <= wanted) {
    std::iota(positions.begin(), positions.end(), int64_t{0});
    return positions;
  }
  for (int64_t k = 0; k < wanted; ++k) {
    const int64_t start = k * count / wanted, end = (k + 1) * count / wanted;
    const uint64_t drawn = CounterBits("positions", k);
    positions[static_cast<size_t>(k)] =
        start + static_cast<int64_t>(drawn % static_cast<uint64_t>(end - start));
  }
  return positions;
}

}  // namespace ridge

// Dice: the random choices of a generator, a function of the seed alone on every machine.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace ridge {

class Dice {
 public:
  // Scrambled, since neighbouring states give the same numbers, one draw later.
  explicit Dice(uint64_t seed) : state_(seed) { state_ = Next(); }

  // splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  // [0, count).  REQUIRES: count > 0.
  int64_t Below(int64_t count) {
    return static_cast<int64_t>(Next() % static_cast<uint64_t>(count));
  }
  int64_t From(int64_t least, int64_t most) { return least + Below(most - least + 1); }
  bool Percent(int percent) { return Below(100) < percent; }
  double Between(double low, double high) {
    return low + (high - low) * static_cast<double>(Next() >> 11) * 0x1p-53;
  }
  template <typename T>
  const T& OneOf(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(Below(static_cast<int64_t>(choices.size())))];
  }
  template <typename T, size_t kCount>
  const T& OneOf(const T (&choices)[kCount]) {
    return choices[static_cast<size_t>(Below(static_cast<int64_t>(kCount)))];
  }
  // 0 .. count-1 in a random order.
  std::vector<int64_t> Shuffled(int64_t count) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < count; ++i) {
      order.push_back(i);
      std::swap(order.back(), order[static_cast<size_t>(Below(i + 1))]);
    }
    return order;
  }

 private:
  uint64_t state_;
};

}  // namespace ridge

// Counts and sizes in whole pieces.
#pragma once
#include <cstdint>

namespace ridge {

// REQUIRES, all three: nothing is negative, `piece` is not 0.
constexpr int64_t CeilDiv(int64_t n, int64_t piece) { return (n + piece - 1) / piece; }
constexpr int64_t RoundUp(int64_t n, int64_t piece) { return CeilDiv(n, piece) * piece; }
// The smallest divisor of `whole` from `least` on; at most `whole`, at least 1.
constexpr int64_t DivisorFrom(int64_t least, int64_t whole) {
  int64_t divisor = least < 1 ? 1 : least;
  while (divisor < whole && whole % divisor != 0) ++divisor;
  return divisor < whole ? divisor : whole;
}
// To whole lines of a cache: so that threads write no line together, and vectors lie in one.
constexpr int64_t RoundUpFloats(int64_t floats) { return RoundUp(floats, 16); }

}  // namespace ridge

// Permutation: a random order of 0..size-1 as a formula, without a table.
//
// It takes no memory, every position is reached at once, and it is the same on every machine.
#pragma once
#include <cstdint>

namespace ridge {

class Permutation {
 public:
  // Each (seed, stream, epoch) is another order.  `stream` keeps different uses of a seed apart.
  // REQUIRES: 1 <= size <= 2^48.
  Permutation(int64_t size, uint64_t seed, uint32_t stream, int64_t epoch);

  // REQUIRES: 0 <= position < size.  The results for all positions are all of 0..size-1, once.
  int64_t At(int64_t position) const;

 private:
  uint64_t Encrypt(uint64_t value) const;

  uint64_t size_;
  uint64_t rows_;     // rows_ * columns_ >= size_, by less than one row
  uint64_t columns_;  // about the square root of size_
  uint64_t key_;
  uint64_t epoch_;
};

}  // namespace ridge

// Bits of integers that travel as doubles: two's complement of 64 bits, exact up to 2^53.
#pragma once
#include <cstdint>

#include "ridge/graph/ops/shared/elementwise.h"

namespace ridge {

// Both inputs are of one integer type.
Result<std::vector<TensorType>> InferBits(const OpCall& call);

inline uint64_t BitsOf(double value) {
  uint64_t bits = 0;
  StoreFromDouble(value < 0 ? DType::kI64 : DType::kU64, &bits, 0, value);
  return bits;
}

inline double NumberOfBits(uint64_t bits, bool negative) {
  return LoadAsDouble(negative ? DType::kI64 : DType::kU64, &bits, 0);
}

}  // namespace ridge

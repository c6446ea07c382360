// The counter formula that weights, inputs and positions come from; make_golden.py has it too.
//
//   u(name, i) = splitmix64(FNV-1a(name) + i * 0x9E3779B97F4A7C15) >> 11, times 2^-53
//
// Every step is exact, or one rounding that IEEE 754 fixes, so both languages get the same bits.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/shape.h"

namespace ridge {

// Element i of the stream of a name: 53 bits.
uint64_t CounterBits(const std::string& name, int64_t i);

// The first `count` numbers of the stream of a name, in [0, 1).
std::vector<double> CounterUniform(const std::string& name, int64_t count);

// The starting values of a parameter: scales of normalizations are near 1, all else is uniform in
// +-1/sqrt(fan in).
std::vector<double> CounterWeight(const std::string& name, const Dims& dims);

// All indices, or one drawn from each of `wanted` equal parts.
std::vector<int64_t> CounterPositions(int64_t count, int64_t wanted);

}  // namespace ridge

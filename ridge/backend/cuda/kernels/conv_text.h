// Texts of where a window's taps lie, for convolutions as products.
#pragma once
#include <string>

#include "ridge/graph/ops/shared/conv.h"

namespace ridge::cuda {

// Statements that define `at`, the place in a plane of x of tap `tap` of output `output`, both
// expressions without side effects; they return R(0) where the tap is outside.
std::string TapText(const SlidingWindow& window, const std::string& output, const std::string& tap);

// Statements that define `at`, the place in a plane of y of the output that sees input `input`
// through tap `tap`; they return R(0) where there is none.
std::string OutputText(const SlidingWindow& window, const std::string& input,
                       const std::string& tap);

// The largest number that these compute with.
int64_t LargestPosition(const SlidingWindow& window);

}  // namespace ridge::cuda

// Texts of where a window's taps lie, for convolutions as products.
#pragma once
#include <array>
#include <string>

#include "ridge/graph/ops/shared/conv.h"

namespace ridge::cuda {

// Statements that define `at`, the place in a plane of x of tap `tap` of output `output`, both
// expressions without side effects; they return R(0) where the tap is outside.
std::string TapText(const SlidingWindow& window, const std::string& output, const std::string& tap);

// conv_grad_input by phases.  With a stride, the outputs that see an input do so through every
// stride-th tap only, which ones its phase says: (position + padding) mod stride.  So each phase is
// a product of its own with fewer taps.  Axes of one phase take all taps.
struct InputPhases {
  std::array<int64_t, 3> phases{}, positions{}, taps{};  // of each axis; the last two of a phase

  explicit InputPhases(const SlidingWindow& window);
  int64_t count() const { return phases[0] * phases[1] * phases[2]; }
  int64_t pixels() const { return positions[0] * positions[1] * positions[2]; }
  int64_t depth() const { return taps[0] * taps[1] * taps[2]; }
};

// Statements over `phase`, `pixel` of its pixels and `tap` of its taps, all variables.
// Define `at`, the number of the tap in w; return R(0) where there is none.
std::string PhaseTapText(const SlidingWindow& window);
// Define `at`, the place in a plane of y of the output; return R(0) where there is none.
std::string PhaseOutputText(const SlidingWindow& window);
// Define `at`, the place in a plane of x of the pixel, and `inside`: whether x has it.
std::string PhaseInputText(const SlidingWindow& window);

// The largest number that these compute with.
int64_t LargestPosition(const SlidingWindow& window);

}  // namespace ridge::cuda

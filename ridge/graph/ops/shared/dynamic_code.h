// Dynamic codes: numbers in 8 bits, the more finely the larger they are within their block.
//
// The code of Dettmers et al., "8-bit optimizers via block-wise quantization", ICLR 2022, as
// create_dynamic_map of bitsandbytes has it.  A number is a code's value times absmax, the largest
// magnitude of its block of 256.  Magnitudes up to 1 fall into 7 decades; decade d, from 10^(d-7)
// to 10^(d-6), is cut into 2^d equal cells (2^(d+1) without signs), whose centres are values.  So
// are 0 and 1.  Codes ascend with their values.
//
// One thing differs: without signs, a number above 0 never becomes 0.  Adam divides by the root of
// its second moment, which may fade below the smallest value while the first moment does not.
#pragma once
#include <array>
#include <cstdint>

namespace ridge {

inline constexpr int64_t kCodeBlock = 256;  // elements of one absmax, in row-major order

// How many blocks there are; the last may be shorter.
constexpr int64_t CodeBlocks(int64_t elements) { return (elements + kCodeBlock - 1) / kCodeBlock; }

enum class CodeSigns : uint8_t { kSigned, kUnsigned };

// From -0.993 (without signs 0) to 1.
double DynamicValue(CodeSigns signs, int code);

// The code of the nearest value.  REQUIRES: -1 <= x <= 1.
uint8_t DynamicCode(CodeSigns signs, double x);

// What the search for a code needs.  The rank of a magnitude counts the values up to it:
//   rank = min(floor(scale[d] x + 8/9 n) - skipped, 2 n - 1 - skipped)
// with n = 2^(d + skipped) cells in its decade d, the last one whose `first` is not above x.
// Signed codes are 127 plus or minus the rank, 127 for 0; unsigned ones are the rank.
inline constexpr int kDecades = 7;
inline constexpr int kSignedZero = 127;
struct Decades {
  int skipped = 0;  // 1 without signs, where there are twice as many cells
  std::array<double, kDecades> scale{};
  std::array<double, kDecades> first{};  // halfway from the decade below, or from 0
  double top = 1;                        // halfway from the last cell to 1
  int top_rank = 0;                      // that of 1
};
const Decades& DecadesOf(CodeSigns signs);

}  // namespace ridge

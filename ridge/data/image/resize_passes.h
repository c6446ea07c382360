// The two passes of the bilinear and bicubic resize, as resize_simd.cc runs them.
//
// A coefficient of 22 bits is split, upper * 2^11 + lower, so that pixels are multiplied by 16-bit
// numbers, two at a time, and sums of 32 bits are exact.
#pragma once
#include <cstdint>

namespace ridge {

constexpr int kCoefficientBits = 22;
constexpr int kLowerBits = 11;

// Four taps of an output pixel, in the order in which a vector multiplies R, G and B by them.
struct TapBlock {
  int16_t upper01[8];  // taps 0 and 1: for R, for G, for B, 0, 0
  int16_t lower01[8];
  int16_t upper23[8];
  int16_t lower23[8];
};
constexpr int kBlockTaps = 4;

// Two taps of an output row.
struct TapPair {
  int32_t upper;  // two 16-bit numbers
  int32_t lower;
};

struct HorizontalPass {
  const uint8_t* from = nullptr;  // the first row
  int64_t from_stride = 0;
  int64_t rows = 0;
  const int32_t* first = nullptr;    // [columns] the pixel under the first tap
  const TapBlock* blocks = nullptr;  // [columns][blocks_a_column]
  int64_t blocks_a_column = 0;
  int64_t columns = 0;  // a multiple of 4
  uint8_t* to = nullptr;
  int64_t to_stride = 0;  // at least 3 * columns + 16
};

// Of RGB.  Reads up to 4 bytes behind a row's last tap.
void RunHorizontalPass(const HorizontalPass& pass);

struct VerticalPass {
  const uint8_t* from = nullptr;  // the row of first == 0
  int64_t from_stride = 0;
  int64_t last_row = 0;
  const int32_t* first = nullptr;  // [rows]
  const TapPair* pairs = nullptr;  // [rows][pairs_a_row]
  int64_t pairs_a_row = 0;
  int64_t rows = 0;
  int64_t row_bytes = 0;  // of any number of channels
  uint8_t* to = nullptr;
  int64_t to_stride = 0;  // at least row_bytes
};

// Reads up to 64 bytes behind a row's end.
void RunVerticalPass(const VerticalPass& pass);

}  // namespace ridge

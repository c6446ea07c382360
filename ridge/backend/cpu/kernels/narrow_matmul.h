// Products in which one extent is so small that a blocked product would multiply padding: the last
// layer of a classifier and its gradients.
#pragma once
#include <cstdint>

namespace ridge::cpu {

// A row-major matrix: its rows are `row` apart.
struct NarrowMatrix {
  const float* data;
  int64_t row;
};

// y [rows, columns] = a [rows, inner] times b [columns, inner] transposed (+ bias, nullptr: none).
struct NarrowDots {
  int64_t rows = 0, columns = 0, inner = 0;
  NarrowMatrix a, b;
  const float* bias = nullptr;
  float* y = nullptr;
  int64_t y_row = 0;
};
inline constexpr int64_t kNarrowDotsColumns = 16;  // at most
int64_t NarrowDotsFloats();                        // scratch of one call, 64-byte aligned
void RunNarrowDots(const NarrowDots& dots, float* scratch);

// c [rows, columns] (+)= a [rows, inner] b [inner, columns]; element (m, k) of a is
// a[m * a_row + k * a_col].
struct NarrowSums {
  int64_t rows = 0, columns = 0, inner = 0;
  const float* a = nullptr;
  int64_t a_row = 0, a_col = 0;
  NarrowMatrix b;
  float* c = nullptr;
  int64_t c_row = 0;
  bool add = false;
};
void RunNarrowSums(const NarrowSums& sums);

// y = (extra, nullptr: nothing) + the parts, in order.  They are `step` apart.
struct NarrowParts {
  const float* data;
  int64_t step;
  int count;
};
void AddNarrowParts(const NarrowParts& parts, const float* extra, int64_t count, float* y);

}  // namespace ridge::cpu

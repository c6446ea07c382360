// Products in which one extent is so small that a blocked product would multiply padding: the last
// layer of a classifier and its gradients.
#pragma once
#include <cstdint>

namespace ridge::cpu {

// A row-major matrix: its rows are `row` apart.
struct SkinnyMatrix {
  const float* data;
  int64_t row;
};

// y [rows, columns] = a [rows, inner] times b [columns, inner] transposed (+ bias, nullptr: none).
struct SkinnyDots {
  int64_t rows = 0, columns = 0, inner = 0;
  SkinnyMatrix a, b;
  const float* bias = nullptr;
  float* y = nullptr;
  int64_t y_row = 0;
};
inline constexpr int64_t kSkinnyDotsColumns = 16;  // at most
int64_t SkinnyDotsFloats();                        // scratch of one call, 64-byte aligned
void RunSkinnyDots(const SkinnyDots& dots, float* scratch);

// c [rows, columns] (+)= a [rows, inner] b [inner, columns]; element (m, k) of a is
// a[m * a_row + k * a_col].
struct SkinnySums {
  int64_t rows = 0, columns = 0, inner = 0;
  const float* a = nullptr;
  int64_t a_row = 0, a_col = 0;
  SkinnyMatrix b;
  float* c = nullptr;
  int64_t c_row = 0;
  bool add = false;
};
void RunSkinnySums(const SkinnySums& sums);

// y = (extra, nullptr: nothing) + the parts, in order.  They are `step` apart.
struct SkinnyParts {
  const float* data;
  int64_t step;
  int count;
};
void AddSkinnyParts(const SkinnyParts& parts, const float* extra, int64_t count, float* y);

}  // namespace ridge::cpu

// The product of matrices in f32 where packing both operands pays: what matmul_f32.cc runs on.
//
// A call is one thread's share of c.  Each element of c is summed along k in one order that does
// not depend on the share, so results are the same for any number of threads.
#pragma once
#include <cstdint>

#include "ridge/core/instructions.h"

namespace ridge::cpu {

// An operand of any layout: element (i, j) is data[i * row + j * col].  Fast where row or col is 1.
struct MatrixF32 {
  const float* data;
  int64_t row, col;
};

struct GemmF32 {
  int64_t m = 0, n = 0, k = 0;
  MatrixF32 a, b;  // (m, k), (k, n)
  float* c;        // (m, n)
  int64_t c_row;   // between rows of c; its columns are side by side
  // Added to the product where it is not nullptr: (m, n), as far apart as c (it may be c), and (n).
  const float* extra = nullptr;
  const float* bias = nullptr;
  bool relu = false;  // of the sum of all
};

// Whether rows of `a` are copied first; `row_major`: its col is 1.
bool GemmF32PacksA(bool row_major, Instructions vectors);
// Floats of scratch that a call with these extents needs, of any alignment.
int64_t GemmF32Scratch(int64_t n, int64_t k);

// REQUIRES: m, n, k > 0.  Allocates nothing.
void RunGemmF32(const GemmF32& gemm, float* scratch);

}  // namespace ridge::cpu

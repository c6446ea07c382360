// The product of matrices in f64: what matmul and the convolutions run on.
//
// oneDNN has no f64.  A thread computes whole elements of C, each summed along k in one order, so
// results are the same in every run with a number of threads.
#pragma once
#include <cstdint>
#include <vector>

#include "ridge/graph/ops/shared/epilogue.h"

namespace ridge::cpu {

// An operand of any layout: element (i, j) is data[i * row + j * col].
struct MatrixF64 {
  const double* data;
  int64_t row, col;
};

struct GemmF64 {
  int64_t m = 0, n = 0, k = 0;
  MatrixF64 a, b;    // (m, k), (k, n)
  double* c;         // (m, n)
  int64_t c_row;     // between rows of c; its columns are side by side
  bool add = false;  // c += a b instead of c = a b
};

// Doubles of scratch memory that one call needs; any alignment.
inline constexpr int64_t kGemmScratch = 96 * 256 + 256 * 256 + 64;

void RunGemm(const GemmF64& gemm, double* scratch);

// The steps of the attribute `epilogue`, made ready beforehand.
class EpilogueF64 {
 public:
  // REQUIRES: the call passed its type check.
  EpilogueF64(const OpCall& call, size_t first_extra_input);
  // Applies the steps to elements [begin, end) of y.
  void Apply(const void* const* inputs, int64_t begin, int64_t end, double* y) const;
  bool empty() const { return steps_.empty(); }

 private:
  std::vector<EpilogueStep> steps_;
  size_t first_extra_;
};

}  // namespace ridge::cpu

// LU decomposition with complete pivoting: what det and cofactor share.
//
// The largest element left becomes the next pivot, so a matrix of rank r has exactly r pivots that
// are not 0, and they come first.
#pragma once
#include <vector>

#include "ridge/graph/op_def.h"

namespace ridge {

struct PivotedLu {
  int64_t n = 0;
  std::vector<double> lu;           // [n, n]: U above and on the diagonal, L (1 on it) below
  std::vector<int64_t> rows, cols;  // element [i, j] of L U is x[rows[i], cols[j]]
  double sign = 1;                  // of both permutations

  double At(int64_t i, int64_t j) const { return lu[static_cast<size_t>(i * n + j)]; }
};

PivotedLu DecomposeLu(const double* x, int64_t n);

double Determinant(const PivotedLu& lu);

// out [n, n] = d(determinant) / d(x): the cofactors.  Singular matrices are no special case.
void Cofactors(const PivotedLu& lu, double* out);

// x is [.., n, n] of floats.
Status CheckSquare(const OpCall& call);

// About `per_element` n flops for each element of x.
Cost CubicCost(const OpCall& call, double per_element);

}  // namespace ridge

#include "ridge/graph/ops/shared/lu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ridge/graph/ops/shared/checks.h"

namespace ridge {
namespace {

// Moves the largest element of the rest to [k, k].
void Pivot(PivotedLu& f, int64_t k) {
  int64_t row = k, col = k;
  for (int64_t i = k; i < f.n; ++i) {
    for (int64_t j = k; j < f.n; ++j) {
      if (std::fabs(f.At(i, j)) > std::fabs(f.At(row, col))) row = i, col = j;
    }
  }
  const auto at = [&](int64_t i, int64_t j) { return f.lu.begin() + (i * f.n + j); };
  if (row != k) {
    std::swap_ranges(at(row, 0), at(row, 0) + f.n, at(k, 0));
    std::swap(f.rows[static_cast<size_t>(row)], f.rows[static_cast<size_t>(k)]);
    f.sign = -f.sign;
  }
  if (col != k) {
    for (int64_t i = 0; i < f.n; ++i) std::iter_swap(at(i, col), at(i, k));
    std::swap(f.cols[static_cast<size_t>(col)], f.cols[static_cast<size_t>(k)]);
    f.sign = -f.sign;
  }
}

// Solves L z = P e_j: column j of L^-1 P.
void SolveLower(const PivotedLu& f, int64_t j, std::vector<double>& z) {
  for (int64_t i = 0; i < f.n; ++i) {
    double sum = f.rows[static_cast<size_t>(i)] == j ? 1 : 0;
    for (int64_t k = 0; k < i; ++k) sum -= f.At(i, k) * z[static_cast<size_t>(k)];
    z[static_cast<size_t>(i)] = sum;
  }
}

// z = adj(U) z without dividing by the last pivot d, which is 0 for a singular matrix.  With
// U = [[V, u], [0, d]] and p the product of V's pivots:
//   adj(U) = p [[d V^-1, -V^-1 u], [0, 1]]
void MultiplyAdjugateUpper(const PivotedLu& f, double p, std::vector<double>& z) {
  const int64_t last = f.n - 1;
  const double d = f.At(last, last), tail = z[static_cast<size_t>(last)];
  for (int64_t i = last; i-- > 0;) {
    double sum = d * z[static_cast<size_t>(i)] - f.At(i, last) * tail;
    for (int64_t k = i + 1; k < last; ++k) sum -= f.At(i, k) * z[static_cast<size_t>(k)];
    z[static_cast<size_t>(i)] = sum / f.At(i, i);
  }
  for (double& value : z) value *= p;
}

}  // namespace

PivotedLu DecomposeLu(const double* x, int64_t n) {
  PivotedLu f;
  f.n = n;
  f.lu.assign(x, x + n * n);
  f.rows.resize(static_cast<size_t>(n));
  std::iota(f.rows.begin(), f.rows.end(), 0);
  f.cols = f.rows;
  for (int64_t k = 0; k < n; ++k) {
    Pivot(f, k);
    if (f.At(k, k) == 0) break;  // all that is left is 0
    for (int64_t i = k + 1; i < n; ++i) {
      double* row = f.lu.data() + i * n;
      row[k] /= f.At(k, k);
      for (int64_t j = k + 1; j < n; ++j) row[j] -= row[k] * f.At(k, j);
    }
  }
  return f;
}

double Determinant(const PivotedLu& lu) {
  double product = lu.sign;
  for (int64_t k = 0; k < lu.n; ++k) product *= lu.At(k, k);
  return product;
}

// The cofactors are adj(x) transposed; adj(x) = sign Q adj(U) L^-1 P.
void Cofactors(const PivotedLu& lu, double* out) {
  double p = lu.sign;
  for (int64_t k = 0; k + 1 < lu.n; ++k) p *= lu.At(k, k);
  std::fill_n(out, lu.n * lu.n, 0.0);
  if (p == 0) return;  // rank n - 2 or less
  std::vector<double> z(static_cast<size_t>(lu.n));
  for (int64_t j = 0; j < lu.n; ++j) {
    SolveLower(lu, j, z);
    MultiplyAdjugateUpper(lu, p, z);
    for (int64_t i = 0; i < lu.n; ++i)
      out[j * lu.n + lu.cols[static_cast<size_t>(i)]] = z[static_cast<size_t>(i)];
  }
}

Status CheckSquare(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFloat(call, 0, "x"));
  const TensorType& x = call.inputs[0];
  const size_t rank = x.dims.size();
  if (rank >= 2 && x.dims[rank - 1] == x.dims[rank - 2]) return Status();
  return CallError(
      call, fmt::format("x is {}; its last two extents must be there and equal", TypeToString(x)));
}

Cost CubicCost(const OpCall& call, double per_element) {
  constexpr double kMost = 0x1p62;
  const TensorType& x = call.inputs[0];
  const double flops =
      per_element * static_cast<double>(x.elements()) * static_cast<double>(x.dims.back());
  return {.flops = static_cast<int64_t>(std::min(flops, kMost)),
          .bytes_read = x.bytes(),
          .bytes_written = call.outputs[0].bytes()};
}

}  // namespace ridge

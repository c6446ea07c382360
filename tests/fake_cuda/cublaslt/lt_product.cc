#include "tests/fake_cuda/cublaslt/lt_product.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "ridge/core/dtype.h"

namespace ridge::fake_cuda {
namespace {

using cuda::LtCode;
using cuda::LtCompute;
using cuda::LtType;

DType DTypeOf(LtType type) {
  switch (type) {
    case LtType::kF64:
      return DType::kF64;
    case LtType::kF16:
      return DType::kF16;
    case LtType::kBF16:
      return DType::kBF16;
    default:
      return DType::kF32;
  }
}

// Ten bits of the mantissa, to nearest.
double ToTf32(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return std::bit_cast<float>((bits + 0x1000) & 0xFFFFE000);
}

// NVIDIA's table of types, as far as there are kernels of ours.
bool AreListed(const LtProduct& product, LtType a, LtType b, LtType c, LtType d) {
  if (a != b || c != d) return false;
  if (product.compute == LtCompute::kF64)
    return product.scale == LtType::kF64 && a == LtType::kF64 && d == a;
  if (product.scale != LtType::kF32 || a == LtType::kF64) return false;
  if (product.compute == LtCompute::kTf32) return a == LtType::kF32 && d == a;
  return d == a || d == LtType::kF32;
}

// One of the batch in f64, row-major: [rows, columns], or transposed [columns, rows].
std::vector<double> Packed(const LtMatrix& matrix, const void* data, int64_t batch, bool transposed,
                           bool rounds) {
  const DType type = DTypeOf(matrix.type);
  std::vector<double> packed(static_cast<size_t>(matrix.rows * matrix.columns));
  for (int64_t column = 0; column < matrix.columns; ++column) {
    for (int64_t row = 0; row < matrix.rows; ++row) {
      const int64_t at = batch * matrix.batch_stride + column * matrix.stride + row;
      const double value = LoadAsDouble(type, data, at);
      packed[static_cast<size_t>(transposed ? column * matrix.rows + row
                                            : row * matrix.columns + column)] =
          rounds ? ToTf32(value) : value;
    }
  }
  return packed;
}

// op(a) op(b) of one of the batch.  Each sum adds up in the order of depth.
class Sums {
 public:
  Sums(const LtProduct& product, const LtMatrix& a, const LtMatrix& b, const LtOperands& operands,
       int64_t batch)
      : depth_(product.transpose_a != 0 ? a.rows : a.columns),
        a_(Packed(a, operands.a, batch, product.transpose_a == 0, RoundsOf(product))),
        b_(Packed(b, operands.b, batch, product.transpose_b == 0, RoundsOf(product))),
        sums_(a_.size() / static_cast<size_t>(depth_)) {}

  // Of all rows.
  const std::vector<double>& OfColumn(int64_t column) {
    const size_t rows = sums_.size();
    std::fill(sums_.begin(), sums_.end(), 0.0);
    for (int64_t k = 0; k < depth_; ++k) {
      const double factor = b_[static_cast<size_t>(column * depth_ + k)];
      const double* const of_depth = a_.data() + static_cast<size_t>(k) * rows;
      for (size_t row = 0; row < rows; ++row) sums_[row] += of_depth[row] * factor;
    }
    return sums_;
  }

 private:
  static bool RoundsOf(const LtProduct& product) { return product.compute == LtCompute::kTf32; }

  const int64_t depth_;
  const std::vector<double> a_, b_;  // [depth, rows], [columns, depth]
  std::vector<double> sums_;
};

}  // namespace

int64_t BytesOfType(LtType type) {
  if (type == LtType::kF64) return 8;
  return type == LtType::kF32 ? 4 : 2;
}

int64_t LtMatrix::Bytes() const {
  return ((batch - 1) * batch_stride + (columns - 1) * stride + rows) * BytesOfType(type);
}

LtCode CheckProduct(const LtProduct& product, const LtMatrix& a, const LtMatrix& b,
                    const LtMatrix& c, const LtMatrix& d) {
  const bool ta = product.transpose_a != 0, tb = product.transpose_b != 0;
  const int64_t depth = ta ? a.rows : a.columns;
  const bool fits = depth == (tb ? b.columns : b.rows) && d.rows == (ta ? a.columns : a.rows) &&
                    d.columns == (tb ? b.rows : b.columns) && c.rows == d.rows &&
                    c.columns == d.columns && depth > 0 && d.rows > 0 && d.columns > 0;
  if (!fits) return LtCode::kInvalidValue;
  for (const LtMatrix* matrix : {&a, &b, &c, &d}) {
    if (matrix->stride < matrix->rows || matrix->batch != d.batch) return LtCode::kInvalidValue;
  }
  if (d.batch > 1 && d.batch_stride < d.stride * (d.columns - 1) + d.rows)
    return LtCode::kInvalidValue;
  const uint32_t bits = product.epilogue & ~(cuda::kLtRelu | cuda::kLtBias);
  if (bits != 0 && product.epilogue != cuda::kLtDefault) return LtCode::kNotSupported;
  const bool other_bias = product.bias_type >= 0 && product.bias_type != static_cast<int>(d.type);
  if (other_bias || !AreListed(product, a.type, b.type, c.type, d.type))
    return LtCode::kNotSupported;
  return LtCode::kSuccess;
}

void RunProduct(const LtProduct& product, const LtMatrix& a, const LtMatrix& b, const LtMatrix& c,
                const LtMatrix& d, double alpha, double beta, const LtOperands& operands) {
  const DType type = DTypeOf(d.type);
  const bool default_steps = product.epilogue == cuda::kLtDefault;
  const bool relu = !default_steps && (product.epilogue & cuda::kLtRelu) != 0;
  const bool adds_bias = !default_steps && (product.epilogue & cuda::kLtBias) != 0;
  for (int64_t batch = 0; batch < d.batch; ++batch) {
    Sums sums(product, a, b, operands, batch);
    for (int64_t column = 0; column < d.columns; ++column) {
      const std::vector<double>& of_column = sums.OfColumn(column);
      for (int64_t row = 0; row < d.rows; ++row) {
        double value = alpha * of_column[static_cast<size_t>(row)];
        if (beta != 0)
          value += beta *
                   LoadAsDouble(type, operands.c, batch * c.batch_stride + column * c.stride + row);
        if (adds_bias) value += LoadAsDouble(type, operands.bias, row);
        if (relu) value = std::max(value, 0.0);
        StoreFromDouble(type, operands.d, batch * d.batch_stride + column * d.stride + row, value);
      }
    }
  }
}

}  // namespace ridge::fake_cuda

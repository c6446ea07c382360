// What cublasLtMatmul means, column-major, in double: D = epilogue(alpha op(A) op(B) + beta C +
// bias).
#pragma once
#include <cstdint>
#include <functional>

#include "ridge/backend/cuda/cublaslt/cublaslt_abi.h"

namespace ridge::fake_cuda {

struct LtMatrix {
  cuda::LtType type;
  int64_t rows, columns, stride;  // elements from a column to the next
  int64_t batch = 1, batch_stride = 0;

  int64_t Bytes() const;  // of all that is touched
};

struct LtProduct {
  cuda::LtCompute compute;
  cuda::LtType scale;
  int32_t transpose_a = 0, transpose_b = 0;
  uint32_t epilogue = cuda::kLtDefault;
  const void* bias = nullptr;
  int32_t bias_type = -1;  // D's
};

// Addresses of a device.
struct LtOperands {
  const void *a, *b, *c, *bias;
  void* d;
};

// kInvalidValue for matrices that do not fit one another, kNotSupported for types that the library
// does not list.
cuda::LtCode CheckProduct(const LtProduct& product, const LtMatrix& a, const LtMatrix& b,
                          const LtMatrix& c, const LtMatrix& d);

// On bytes that the host reaches.  REQUIRES: CheckProduct() passed.
void RunProduct(const LtProduct& product, const LtMatrix& a, const LtMatrix& b, const LtMatrix& c,
                const LtMatrix& d, double alpha, double beta, const LtOperands& operands);

int64_t BytesOfType(cuda::LtType type);

}  // namespace ridge::fake_cuda

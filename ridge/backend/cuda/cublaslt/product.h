// Product: what a call of matmul asks of cuBLASLt.
#pragma once
#include "ridge/backend/cuda/cublaslt/cublaslt_abi.h"
#include "ridge/graph/op_def.h"

namespace ridge::cuda {

// Matrices as they lie, row-major.
struct ProductMatrix {
  LtType type = LtType::kF32;
  int64_t rows = 0, columns = 0;
  int64_t batch = 1;
  int64_t batch_stride = 0;  // elements from one of the batch to the next; 0: all are one

  // What all matrices of the batch are aligned to, where the first of them in the first slice is to
  // `first_bytes`: a slice begins a whole number of its matrices behind the first one.
  int64_t AlignmentBytes(int64_t first_bytes) const;
};

// y = a b + bias + added, and relu of it.  The bias is of y's type.
struct Product {
  ProductMatrix a, b, y;
  bool transpose_a = false, transpose_b = false;
  LtCompute compute = LtCompute::kF32;
  bool has_bias = false, narrows_bias = false;  // it is of f32, and y is narrower
  int added = -1;                               // input that is added: of y's shape; -1: none
  bool relu = false;
};

// nullptr; or why cuBLASLt has no such product.  `tf32`: products of f32 are rounded to it.
// REQUIRES: matmul accepts the call.
const char* DescribeProduct(const OpCall& call, bool tf32, Product& product);

}  // namespace ridge::cuda

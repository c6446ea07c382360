// CublasLt: libcublasLt.so.13, opened when a GPU is asked for, and its descriptors of a product.
#pragma once
#include <string>
#include <vector>

#include "ridge/backend/cuda/cublaslt/cublaslt_abi.h"
#include "ridge/backend/cuda/cublaslt/product.h"
#include "ridge/backend/cuda/library_search.h"

namespace ridge::cuda {

// Status of a call: RIDGE_LT(library, Create, &handle).
#define RIDGE_LT(library, name, ...) (library).Check((library).name(__VA_ARGS__), "cublasLt" #name)

struct CublasLt : LtTable {
  std::string path;     // of the file
  std::string version;  // "13.1.0"

  // Fails with kDevice: it is not found, or lacks a function.
  static Result<CublasLt> Open(const LibrarySearch& search);
  // "cublasLtMatmul failed: CUBLAS_STATUS_NOT_SUPPORTED (15)"; ok for kSuccess.  Of kDevice.
  Status Check(LtCode code, const char* function) const;
};

// "algo66_tile20_stages36_cluster2": what the library tells of an algorithm; usual values
// are left out.
std::string NameOf(const CublasLt& library, const LtAlgorithm& algorithm);

// How an algorithm is asked for.
struct LtLimits {
  int64_t workspace_bytes = 0;
  int64_t alignment_bytes = 256;  // of every value
};

// The library's objects for one product.  cuBLAS knows columns, our matrices are rows: what it is
// given is the transposed product, D' = B' A'.  `library` outlives it.
class LtDescriptors {
 public:
  // Fails with the library's errors.
  Status Make(const CublasLt& library, const Product& product);
  explicit LtDescriptors() = default;
  ~LtDescriptors();
  LtDescriptors(const LtDescriptors&) = delete;
  LtDescriptors& operator=(const LtDescriptors&) = delete;

  // At most `most` of the library's algorithms whose bits are the same in every run, its best
  // first.  Fails where it has none.
  Result<std::vector<LtHeuristic>> Choose(LtHandle handle, const LtLimits& limits, int most) const;

  struct Operands {
    const void *a, *b, *bias, *added;  // bias, added: nullptr where the product has none
    void *y, *workspace;
    size_t workspace_bytes;
  };
  // Allocates nothing.
  Status Enqueue(LtHandle handle, StreamHandle stream, const LtAlgorithm& algorithm,
                 const Operands& operands);

 private:
  Status MakeMatrices();
  Status MakeMatrix(const ProductMatrix& matrix, LtMatrixHandle& made) const;
  Status SetPreference(LtPreferenceHandle preference, const LtLimits& limits) const;
  template <typename Value>
  Status Set(LtProductAttribute attribute, const Value& value) const {
    return RIDGE_LT(*library_, MatmulDescSetAttribute, product_handle_, attribute, &value,
                    sizeof value);
  }

  const CublasLt* library_ = nullptr;
  Product product_;
  LtProductHandle product_handle_ = nullptr;
  LtMatrixHandle a_ = nullptr, b_ = nullptr, y_ = nullptr;
};

}  // namespace ridge::cuda

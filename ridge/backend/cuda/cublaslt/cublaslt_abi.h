// cuBLASLt's C interface, as far as it is used: types, values and functions.
//
// It stands here so that a build needs no CUDA.  tests/fake_cuda/header/cublaslt_abi_test.cc
// compares it with NVIDIA's cublasLt.h where that is installed.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ridge/backend/cuda/driver_abi.h"

namespace ridge::cuda {

// cublasStatus_t.  Only those that the code or its tests tell apart.
enum class LtCode : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kInvalidValue = 7,
  kExecutionFailed = 13,
  kNotSupported = 15,
};

// cudaDataType_t.
enum class LtType : int { kF32 = 0, kF64 = 1, kF16 = 2, kBF16 = 14 };

// cublasComputeType_t.
enum class LtCompute : int { kF32 = 68, kF64 = 70, kTf32 = 77 };

// cublasLtMatmulDescAttributes_t.
enum class LtProductAttribute : int {
  kTransposeA = 3,
  kTransposeB = 4,
  kEpilogue = 7,
  kBias = 8,       // address
  kBiasType = 26,  // LtType
};
inline constexpr int32_t kLtPlain = 0, kLtTransposed = 1;  // cublasOperation_t

// cublasLtEpilogue_t: bits, but for kDefault.
inline constexpr uint32_t kLtDefault = 1, kLtRelu = 2, kLtBias = 4;

// cublasLtMatrixLayoutAttribute_t.
enum class LtMatrixAttribute : int { kBatch = 5, kBatchStride = 6 };

// cublasLtMatmulPreferenceAttributes_t.
enum class LtPreferenceAttribute : int {
  kWorkspaceBytes = 1,
  kReductions = 3,
  kAlignmentA = 5,
  kAlignmentB = 6,
  kAlignmentC = 7,
  kAlignmentD = 8,
};
// cublasLtReductionScheme_t: bits.  kInPlace adds in the order in which blocks end.
inline constexpr uint32_t kLtReduceInPlace = 1, kLtReduceInComputeType = 2,
                          kLtReduceInOutputType = 4;

// cublasLtMatmulAlgoConfigAttributes_t.
enum class LtAlgorithmAttribute : int {
  kId = 0,
  kTile = 1,
  kSplits = 2,  // of the sum
  kReduction = 3,
  kSwizzle = 4,
  kCustom = 5,
  kStages = 6,
  kInnerShape = 7,  // 16 bits, as kCluster; the others have 32
  kCluster = 8,
};

using LtHandle = struct LtOpaque*;
using LtProductHandle = struct LtProductOpaque*;
using LtMatrixHandle = struct LtMatrixOpaque*;
using LtPreferenceHandle = struct LtPreferenceOpaque*;

// A way to run a product; bytes of the library's.
struct LtAlgorithm {
  uint64_t data[8];
};
struct LtHeuristic {
  LtAlgorithm algorithm;
  size_t workspace_bytes;
  LtCode state;  // kSuccess: the others are set
  float waves;
  int reserved[4];
};

// F(name, parameters), for each function that is used: cublasLt<name>.
#define RIDGE_CUBLASLT_FUNCTIONS(F)                                                                \
  F(Create, (LtHandle * handle))                                                                   \
  F(Destroy, (LtHandle handle))                                                                    \
  F(MatmulDescCreate, (LtProductHandle * product, LtCompute compute, LtType scale))                \
  F(MatmulDescSetAttribute,                                                                        \
    (LtProductHandle product, LtProductAttribute attribute, const void* value, size_t bytes))      \
  F(MatmulDescDestroy, (LtProductHandle product))                                                  \
  F(MatrixLayoutCreate,                                                                            \
    (LtMatrixHandle * matrix, LtType type, uint64_t rows, uint64_t columns, int64_t stride))       \
  F(MatrixLayoutSetAttribute,                                                                      \
    (LtMatrixHandle matrix, LtMatrixAttribute attribute, const void* value, size_t bytes))         \
  F(MatrixLayoutDestroy, (LtMatrixHandle matrix))                                                  \
  F(MatmulPreferenceCreate, (LtPreferenceHandle * preference))                                     \
  F(MatmulPreferenceSetAttribute, (LtPreferenceHandle preference, LtPreferenceAttribute attribute, \
                                   const void* value, size_t bytes))                               \
  F(MatmulPreferenceDestroy, (LtPreferenceHandle preference))                                      \
  F(MatmulAlgoGetHeuristic,                                                                        \
    (LtHandle handle, LtProductHandle product, LtMatrixHandle a, LtMatrixHandle b,                 \
     LtMatrixHandle c, LtMatrixHandle d, LtPreferenceHandle preference, int wanted,                \
     LtHeuristic* found, int* count))                                                              \
  F(MatmulAlgoConfigGetAttribute, (const LtAlgorithm* algorithm, LtAlgorithmAttribute attribute,   \
                                   void* value, size_t bytes, size_t* written))                    \
  F(Matmul,                                                                                        \
    (LtHandle handle, LtProductHandle product, const void* alpha, const void* a,                   \
     LtMatrixHandle a_matrix, const void* b, LtMatrixHandle b_matrix, const void* beta,            \
     const void* c, LtMatrixHandle c_matrix, void* d, LtMatrixHandle d_matrix,                     \
     const LtAlgorithm* algorithm, void* workspace, size_t workspace_bytes, StreamHandle stream))

// The functions of a library that was opened.
struct LtTable {
#define RIDGE_CUBLASLT_MEMBER(name, parameters) LtCode(*name) parameters = nullptr;
  RIDGE_CUBLASLT_FUNCTIONS(RIDGE_CUBLASLT_MEMBER)
#undef RIDGE_CUBLASLT_MEMBER
  size_t (*GetVersion)() = nullptr;  // 130100: 13.1.0
  const char* (*GetStatusName)(LtCode code) = nullptr;
};

}  // namespace ridge::cuda

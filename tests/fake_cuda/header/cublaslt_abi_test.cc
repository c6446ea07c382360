// Our declarations of cuBLASLt against NVIDIA's.  Compiled where cublasLt.h is found.
#include "ridge/backend/cuda/cublaslt/cublaslt_abi.h"

#include <cublasLt.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

namespace ridge::cuda {
namespace {

// --- functions: the same number of parameters, each of the same size and kind --------------------

template <typename A, typename B>
constexpr bool kLtSameKind =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&
    (std::is_pointer_v<A> ||
     ((std::is_enum_v<A> || std::is_integral_v<A>)&&(std::is_enum_v<B> || std::is_integral_v<B>)));

template <typename Ours, typename Theirs>
constexpr bool kLtSameShape = false;
template <typename R, typename... A, typename S, typename... B>
constexpr bool kLtSameShape<R (*)(A...), S (*)(B...)> = [] {
  if constexpr (sizeof...(A) != sizeof...(B)) {
    return false;
  } else {
    return kLtSameKind<R, S> && (kLtSameKind<A, B> && ...);
  }
}();

#define RIDGE_TEST_LT_SHAPE(name, ...) \
  static_assert(kLtSameShape<decltype(LtTable::name), decltype(&::cublasLt##name)>, #name);
RIDGE_CUBLASLT_FUNCTIONS(RIDGE_TEST_LT_SHAPE)
RIDGE_TEST_LT_SHAPE(GetVersion)
RIDGE_TEST_LT_SHAPE(GetStatusName)

static_assert(!kLtSameShape<int (*)(int*), int (*)(long)>);

// --- structs -------------------------------------------------------------------------------------

static_assert(sizeof(LtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
using TheirHeuristic = cublasLtMatmulHeuristicResult_t;
static_assert(sizeof(LtHeuristic) == sizeof(TheirHeuristic));
static_assert(offsetof(LtHeuristic, algorithm) == offsetof(TheirHeuristic, algo));
static_assert(offsetof(LtHeuristic, workspace_bytes) == offsetof(TheirHeuristic, workspaceSize));
static_assert(offsetof(LtHeuristic, state) == offsetof(TheirHeuristic, state));
static_assert(offsetof(LtHeuristic, waves) == offsetof(TheirHeuristic, wavesCount));

// --- values --------------------------------------------------------------------------------------

#define RIDGE_TEST_LT_VALUES(V)                                                       \
  V(LtCode::kSuccess, CUBLAS_STATUS_SUCCESS)                                          \
  V(LtCode::kNotInitialized, CUBLAS_STATUS_NOT_INITIALIZED)                           \
  V(LtCode::kInvalidValue, CUBLAS_STATUS_INVALID_VALUE)                               \
  V(LtCode::kExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED)                         \
  V(LtCode::kNotSupported, CUBLAS_STATUS_NOT_SUPPORTED)                               \
  V(LtType::kF32, CUDA_R_32F)                                                         \
  V(LtType::kF64, CUDA_R_64F)                                                         \
  V(LtType::kF16, CUDA_R_16F)                                                         \
  V(LtType::kBF16, CUDA_R_16BF)                                                       \
  V(LtCompute::kF32, CUBLAS_COMPUTE_32F)                                              \
  V(LtCompute::kF64, CUBLAS_COMPUTE_64F)                                              \
  V(LtCompute::kTf32, CUBLAS_COMPUTE_32F_FAST_TF32)                                   \
  V(LtProductAttribute::kTransposeA, CUBLASLT_MATMUL_DESC_TRANSA)                     \
  V(LtProductAttribute::kTransposeB, CUBLASLT_MATMUL_DESC_TRANSB)                     \
  V(LtProductAttribute::kEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE)                     \
  V(LtProductAttribute::kBias, CUBLASLT_MATMUL_DESC_BIAS_POINTER)                     \
  V(LtProductAttribute::kBiasType, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE)               \
  V(kLtPlain, CUBLAS_OP_N)                                                            \
  V(kLtTransposed, CUBLAS_OP_T)                                                       \
  V(kLtDefault, CUBLASLT_EPILOGUE_DEFAULT)                                            \
  V(kLtRelu, CUBLASLT_EPILOGUE_RELU)                                                  \
  V(kLtBias, CUBLASLT_EPILOGUE_BIAS)                                                  \
  V(kLtRelu | kLtBias, CUBLASLT_EPILOGUE_RELU_BIAS)                                   \
  V(LtMatrixAttribute::kBatch, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)                    \
  V(LtMatrixAttribute::kBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)     \
  V(LtAlgorithmAttribute::kId, CUBLASLT_ALGO_CONFIG_ID)                               \
  V(LtAlgorithmAttribute::kTile, CUBLASLT_ALGO_CONFIG_TILE_ID)                        \
  V(LtAlgorithmAttribute::kSplits, CUBLASLT_ALGO_CONFIG_SPLITK_NUM)                   \
  V(LtAlgorithmAttribute::kReduction, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)          \
  V(LtAlgorithmAttribute::kSwizzle, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING)               \
  V(LtAlgorithmAttribute::kCustom, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION)                \
  V(LtAlgorithmAttribute::kStages, CUBLASLT_ALGO_CONFIG_STAGES_ID)                    \
  V(LtAlgorithmAttribute::kInnerShape, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID)           \
  V(LtAlgorithmAttribute::kCluster, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID)            \
  V(LtPreferenceAttribute::kWorkspaceBytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) \
  V(LtPreferenceAttribute::kReductions, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)   \
  V(LtPreferenceAttribute::kAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)   \
  V(LtPreferenceAttribute::kAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES)   \
  V(LtPreferenceAttribute::kAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES)   \
  V(LtPreferenceAttribute::kAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)   \
  V(kLtReduceInPlace, CUBLASLT_REDUCTION_SCHEME_INPLACE)                              \
  V(kLtReduceInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)                   \
  V(kLtReduceInOutputType, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)

#define RIDGE_TEST_LT_VALUE(ours, theirs) \
  static_assert(static_cast<int>(ours) == static_cast<int>(theirs), #theirs);
RIDGE_TEST_LT_VALUES(RIDGE_TEST_LT_VALUE)

TEST(CublasLtHeader, IsOfTheReleaseWhoseLibraryIsOpened) { EXPECT_EQ(CUBLAS_VER_MAJOR, 13); }

}  // namespace
}  // namespace ridge::cuda

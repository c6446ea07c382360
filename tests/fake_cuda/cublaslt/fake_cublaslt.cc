// libcublasLt.so.13 that computes on the host, in the order of the fake driver's streams.
//
//   RIDGE_FAKE_CUBLASLT_FAIL=cublasLtMatmul:2:13    the second call since it was set fails with 13
//   RIDGE_FAKE_CUBLASLT_SLOW_US=500                 algorithm 1 takes so much longer
//   RIDGE_FAKE_CUBLASLT_BEST=2                      of the two, which it gives first (1)
//
// It answers with two algorithms whose bits differ from run to run where that is allowed, and that
// take a workspace for long sums.  An algorithm runs only the product that it was made
// for, on addresses as aligned as was said, with its whole workspace.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "tests/fake_cuda/cublaslt/lt_product.h"
#include "tests/fake_cuda/fake_hooks.h"
#include "tests/fake_cuda/fake_memory.h"
#include "tests/fake_cuda/injected_error.h"

extern "C" ridge::cuda::DriverCode ridge_fake_cuda_launch(ridge::cuda::StreamHandle stream,
                                                          ridge::fake_cuda::HostKernel run,
                                                          void* argument,
                                                          ridge::fake_cuda::FreeArgument free);

namespace ridge::fake_cuda {
namespace {

using namespace cuda;

constexpr uint32_t kMark = 0x4c54, kSlowId = 1, kOtherId = 2;
constexpr uint64_t kLongSum = 64, kWorkspaceBytes = 4096;

LtMatrix& In(LtMatrixHandle handle) { return *reinterpret_cast<LtMatrix*>(handle); }
LtProduct& In(LtProductHandle handle) { return *reinterpret_cast<LtProduct*>(handle); }

struct Preference {
  uint64_t workspace_bytes = 0;
  uint32_t reductions = 7;
  uint32_t alignment[4] = {256, 256, 256, 256};  // of a, b, c, d
};
Preference& In(LtPreferenceHandle handle) { return *reinterpret_cast<Preference*>(handle); }

template <typename Handle, typename Object>
LtCode Give(Handle* handle, Object object) {
  *handle = reinterpret_cast<Handle>(new Object(std::move(object)));
  TheState().Born();
  return LtCode::kSuccess;
}
template <typename Object>
LtCode TakeBack(Object& object) {
  delete &object;
  TheState().Died();
  return LtCode::kSuccess;
}

template <typename Value>
LtCode Take(Value& value, const void* from, size_t bytes) {
  if (bytes != sizeof value) return LtCode::kInvalidValue;
  std::memcpy(&value, from, bytes);
  return LtCode::kSuccess;
}

InjectedError injected("RIDGE_FAKE_CUBLASLT_FAIL");

// What an algorithm holds.
struct Algorithm {
  uint32_t mark, id;
  uint64_t in_place, workspace_bytes, product, alignment[4];
};
static_assert(sizeof(Algorithm) == sizeof(LtAlgorithm));

uint64_t HashOf(const LtProduct& product, std::initializer_list<const LtMatrix*> matrices) {
  uint64_t hash = product.epilogue * 8 + product.transpose_a * 2 + product.transpose_b;
  for (const LtMatrix* m : matrices) {
    for (const int64_t number :
         {static_cast<int64_t>(m->type), m->rows, m->columns, m->stride, m->batch, m->batch_stride})
      hash = hash * 1000003 + static_cast<uint64_t>(number);
  }
  return hash;
}

int64_t Setting(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}
std::chrono::microseconds SlowTime() {
  return std::chrono::microseconds(Setting("RIDGE_FAKE_CUBLASLT_SLOW_US", 0));
}

// None: the library does not tell it of this algorithm.
std::optional<uint32_t> AttributeOf(const Algorithm& algorithm, LtAlgorithmAttribute attribute) {
  const bool first = algorithm.id == kSlowId;
  switch (attribute) {
    case LtAlgorithmAttribute::kId:
      return algorithm.id;
    case LtAlgorithmAttribute::kTile:
      return first ? 18 : 20;
    case LtAlgorithmAttribute::kSplits:
      return first ? 1 : 3;
    case LtAlgorithmAttribute::kReduction:
      return first ? 0 : kLtReduceInComputeType;
    case LtAlgorithmAttribute::kCluster:
      return first ? 0 : 5;
    case LtAlgorithmAttribute::kInnerShape:
      return std::nullopt;
    default:
      return 0;
  }
}

// A product on its way.
struct Work {
  LtProduct product;
  LtMatrix a, b, c, d;
  double alpha, beta;
  LtOperands at;
  Algorithm algorithm;
  void* workspace;

  DriverCode Run();
  const void* Find(const void* address, const LtMatrix& matrix, int operand);
  DriverCode wrong = DriverCode::kSuccess;
};

const void* Work::Find(const void* address, const LtMatrix& matrix, int operand) {
  const auto from = reinterpret_cast<DevicePtr>(address);
  for (int64_t i = 0; i < matrix.batch; ++i) {
    const auto offset = static_cast<uint64_t>(i * matrix.batch_stride * BytesOfType(matrix.type));
    if ((from + offset) % algorithm.alignment[operand] != 0) wrong = DriverCode::kMisalignedAddress;
  }
  const void* const inside = Reach(from, static_cast<size_t>(matrix.Bytes()));
  if (inside == nullptr) wrong = DriverCode::kIllegalAddress;
  return inside;
}

DriverCode Work::Run() {
  LtOperands inside{Find(at.a, a, 0), Find(at.b, b, 1), Find(at.c, c, 2), nullptr,
                    const_cast<void*>(Find(at.d, d, 3))};
  if (product.epilogue != kLtDefault && (product.epilogue & kLtBias) != 0) {
    const LtMatrix vector{d.type, d.rows, 1, d.rows};
    inside.bias = Find(product.bias, vector, 3);
  }
  if (algorithm.workspace_bytes > 0) {
    void* const scratch = Reach(reinterpret_cast<DevicePtr>(workspace), algorithm.workspace_bytes);
    if (scratch == nullptr) return DriverCode::kIllegalAddress;
    std::memset(scratch, 0xCD, algorithm.workspace_bytes);
  }
  if (wrong != DriverCode::kSuccess) return wrong;
  if (algorithm.id == kSlowId) std::this_thread::sleep_for(SlowTime());
  RunProduct(product, a, b, c, d, alpha, beta, inside);
  static std::atomic<unsigned char> runs{0};
  if (algorithm.in_place != 0) *static_cast<unsigned char*>(inside.d) ^= ++runs;
  return DriverCode::kSuccess;
}

DriverCode RunWork(void* argument) { return static_cast<Work*>(argument)->Run(); }
void FreeWork(void* argument) { delete static_cast<Work*>(argument); }

double Number(const void* at, LtType type) {
  return type == LtType::kF64 ? *static_cast<const double*>(at) : *static_cast<const float*>(at);
}

}  // namespace

#define RIDGE_FAKE_LT_BEGIN \
  if (const auto code = injected.Of<LtCode>(__func__); code != LtCode::kSuccess) return code

extern "C" {

size_t cublasLtGetVersion() { return 130100; }

const char* cublasLtGetStatusName(LtCode code) {
  switch (code) {
    case LtCode::kSuccess:
      return "CUBLAS_STATUS_SUCCESS";
    case LtCode::kNotInitialized:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case LtCode::kInvalidValue:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case LtCode::kExecutionFailed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case LtCode::kNotSupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "unknown";
}

LtCode cublasLtCreate(LtHandle* handle) {
  RIDGE_FAKE_LT_BEGIN;
  static int library;  // on no heap: nobody destroys it behind a GPU that is lost
  if (CurrentGpu() == nullptr) return LtCode::kNotInitialized;
  *handle = reinterpret_cast<LtHandle>(&library);
  TheState().Born();
  return LtCode::kSuccess;
}
LtCode cublasLtDestroy(LtHandle) {
  TheState().Died();
  return LtCode::kSuccess;
}

LtCode cublasLtMatmulDescCreate(LtProductHandle* product, LtCompute compute, LtType scale) {
  RIDGE_FAKE_LT_BEGIN;
  return Give(product, LtProduct{compute, scale});
}
LtCode cublasLtMatmulDescSetAttribute(LtProductHandle handle, LtProductAttribute attribute,
                                      const void* value, size_t bytes) {
  RIDGE_FAKE_LT_BEGIN;
  LtProduct& product = In(handle);
  switch (attribute) {
    case LtProductAttribute::kTransposeA:
      return Take(product.transpose_a, value, bytes);
    case LtProductAttribute::kTransposeB:
      return Take(product.transpose_b, value, bytes);
    case LtProductAttribute::kEpilogue:
      return Take(product.epilogue, value, bytes);
    case LtProductAttribute::kBias:
      return Take(product.bias, value, bytes);
    case LtProductAttribute::kBiasType:
      return Take(product.bias_type, value, bytes);
  }
  return LtCode::kInvalidValue;
}
LtCode cublasLtMatmulDescDestroy(LtProductHandle product) { return TakeBack(In(product)); }

LtCode cublasLtMatrixLayoutCreate(LtMatrixHandle* matrix, LtType type, uint64_t rows,
                                  uint64_t columns, int64_t stride) {
  RIDGE_FAKE_LT_BEGIN;
  return Give(matrix,
              LtMatrix{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), stride});
}
LtCode cublasLtMatrixLayoutSetAttribute(LtMatrixHandle handle, LtMatrixAttribute attribute,
                                        const void* value, size_t bytes) {
  if (attribute == LtMatrixAttribute::kBatchStride)
    return Take(In(handle).batch_stride, value, bytes);
  int32_t batch = 0;
  const LtCode code = Take(batch, value, bytes);
  In(handle).batch = batch;
  return code;
}
LtCode cublasLtMatrixLayoutDestroy(LtMatrixHandle matrix) { return TakeBack(In(matrix)); }

LtCode cublasLtMatmulPreferenceCreate(LtPreferenceHandle* preference) {
  return Give(preference, Preference());
}
LtCode cublasLtMatmulPreferenceSetAttribute(LtPreferenceHandle handle,
                                            LtPreferenceAttribute attribute, const void* value,
                                            size_t bytes) {
  Preference& preference = In(handle);
  if (attribute == LtPreferenceAttribute::kWorkspaceBytes)
    return Take(preference.workspace_bytes, value, bytes);
  if (attribute == LtPreferenceAttribute::kReductions)
    return Take(preference.reductions, value, bytes);
  const int operand =
      static_cast<int>(attribute) - static_cast<int>(LtPreferenceAttribute::kAlignmentA);
  return Take(preference.alignment[operand], value, bytes);
}
LtCode cublasLtMatmulPreferenceDestroy(LtPreferenceHandle preference) {
  return TakeBack(In(preference));
}

LtCode cublasLtMatmulAlgoGetHeuristic(LtHandle, LtProductHandle product, LtMatrixHandle a,
                                      LtMatrixHandle b, LtMatrixHandle c, LtMatrixHandle d,
                                      LtPreferenceHandle handle, int wanted, LtHeuristic* found,
                                      int* count) {
  RIDGE_FAKE_LT_BEGIN;
  const LtCode code = CheckProduct(In(product), In(a), In(b), In(c), In(d));
  if (code != LtCode::kSuccess || wanted < 1) return code;
  const Preference& preference = In(handle);
  Algorithm algorithm{kMark,
                      static_cast<uint32_t>(Setting("RIDGE_FAKE_CUBLASLT_BEST", kSlowId)),
                      preference.reductions & kLtReduceInPlace,
                      0,
                      HashOf(In(product), {&In(a), &In(b), &In(c), &In(d)}),
                      {}};
  const int64_t depth = In(product).transpose_a != 0 ? In(a).rows : In(a).columns;
  if (depth >= static_cast<int64_t>(kLongSum) && preference.workspace_bytes >= kWorkspaceBytes)
    algorithm.workspace_bytes = kWorkspaceBytes;
  for (int i = 0; i < 4; ++i) algorithm.alignment[i] = preference.alignment[i];
  *count = std::min(wanted, 2);
  for (int i = 0; i < *count; ++i) {
    found[i] = {.algorithm = {},
                .workspace_bytes = algorithm.workspace_bytes,
                .state = LtCode::kSuccess,
                .waves = 1,
                .reserved = {}};
    std::memcpy(&found[i].algorithm, &algorithm, sizeof algorithm);
    algorithm.id = kSlowId + kOtherId - algorithm.id;
  }
  return LtCode::kSuccess;
}

LtCode cublasLtMatmulAlgoConfigGetAttribute(const LtAlgorithm* algorithm,
                                            LtAlgorithmAttribute attribute, void* to, size_t bytes,
                                            size_t* written) {
  RIDGE_FAKE_LT_BEGIN;
  Algorithm read{};
  std::memcpy(&read, algorithm, sizeof read);
  const bool is_short =
      attribute == LtAlgorithmAttribute::kInnerShape || attribute == LtAlgorithmAttribute::kCluster;
  if (read.mark != kMark || bytes != (is_short ? sizeof(uint16_t) : sizeof(uint32_t)))
    return LtCode::kInvalidValue;
  const std::optional<uint32_t> value = AttributeOf(read, attribute);
  if (!value) return LtCode::kNotSupported;
  std::memcpy(to, &*value, bytes);  // little-endian
  *written = bytes;
  return LtCode::kSuccess;
}

LtCode cublasLtMatmul(LtHandle, LtProductHandle product, const void* alpha, const void* a,
                      LtMatrixHandle a_matrix, const void* b, LtMatrixHandle b_matrix,
                      const void* beta, const void* c, LtMatrixHandle c_matrix, void* d,
                      LtMatrixHandle d_matrix, const LtAlgorithm* chosen, void* workspace,
                      size_t workspace_bytes, StreamHandle stream) {
  RIDGE_FAKE_LT_BEGIN;
  if (CurrentGpu() == nullptr) return LtCode::kNotInitialized;
  auto work = std::make_unique<Work>(Work{In(product),
                                          In(a_matrix),
                                          In(b_matrix),
                                          In(c_matrix),
                                          In(d_matrix),
                                          0,
                                          0,
                                          {a, b, c, nullptr, d},
                                          {},
                                          workspace});
  std::memcpy(&work->algorithm, chosen, sizeof *chosen);
  const bool is_its =
      work->algorithm.mark == kMark &&
      work->algorithm.product == HashOf(work->product, {&work->a, &work->b, &work->c, &work->d});
  if (!is_its || workspace_bytes < work->algorithm.workspace_bytes) return LtCode::kInvalidValue;
  work->alpha = Number(alpha, work->product.scale);
  work->beta = Number(beta, work->product.scale);
  return ridge_fake_cuda_launch(stream, RunWork, work.release(), FreeWork) == DriverCode::kSuccess
             ? LtCode::kSuccess
             : LtCode::kExecutionFailed;
}

}  // extern "C"

// The fake's functions have the types that the loader takes them for.
#define RIDGE_FAKE_LT_SAME_TYPE(name, parameters) \
  static_assert(std::is_same_v<decltype(&cublasLt##name), decltype(LtTable::name)>);
RIDGE_CUBLASLT_FUNCTIONS(RIDGE_FAKE_LT_SAME_TYPE)

}  // namespace ridge::fake_cuda

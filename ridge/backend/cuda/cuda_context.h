// CudaContext: one GPU's primary context, and the first error of its work.
//
// The primary one, because cuBLASLt, cuDNN and NCCL use it too.
#pragma once
#include <memory>
#include <mutex>

#include "ridge/backend/cuda/driver.h"
#include "ridge/backend/cuda/gpus.h"

namespace ridge::cuda {

// Status of a call: RIDGE_CUDA(context, MemGetInfo, &free, &total).
#define RIDGE_CUDA(context, name, ...) \
  (context).Check((context).driver().name(__VA_ARGS__), "cu" #name)

class CudaContext {
 public:
  // `driver` has been initialized.
  static Result<std::unique_ptr<CudaContext>> Retain(const Driver& driver, int ordinal);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const Driver& driver() const { return driver_; }
  int ordinal() const { return ordinal_; }

  // "cuda:0: cuMemMap failed: CUDA_ERROR_INVALID_VALUE (1)".
  Status Check(DriverCode code, const char* function) const;
  // A failure of a library's kernel on it: "cuda:0: cublasLtMatmul failed: ... hint: ...".
  Status OfLibrary(const Status& status) const;
  // Makes it the context of the calling thread; every other call of the driver comes after it.
  Status Enter() const;

  // The first error stays, whether CUDA lets the process go on or not: work that came after it
  // would run on what it left.  Any thread.
  void Keep(const Status& status);
  Status error() const;
  // Whether work may be enqueued by the calling thread.
  bool Ready();

 private:
  CudaContext(const Driver& driver, int ordinal) : driver_(driver), ordinal_(ordinal) {}

  const Driver driver_;
  const int ordinal_;
  DeviceId device_ = 0;
  ContextHandle context_ = nullptr;
  mutable std::mutex error_lock_;
  Status error_;
};

}  // namespace ridge::cuda

#include "ridge/backend/cuda/cuda_context.h"

#include <fmt/format.h>

namespace ridge::cuda {

Result<std::unique_ptr<CudaContext>> CudaContext::Retain(const Driver& driver, int ordinal) {
  std::unique_ptr<CudaContext> context(new CudaContext(driver, ordinal));
  RIDGE_RETURN_IF_ERROR(RIDGE_CUDA(*context, DeviceGet, &context->device_, ordinal));
  RIDGE_RETURN_IF_ERROR(
      RIDGE_CUDA(*context, DevicePrimaryCtxRetain, &context->context_, context->device_));
  RIDGE_RETURN_IF_ERROR(context->Enter());
  return context;
}

CudaContext::~CudaContext() {
  if (context_ != nullptr) driver_.DevicePrimaryCtxRelease(device_);
}

Status CudaContext::Check(DriverCode code, const char* function) const {
  const Status status = driver_.Check(code, function);
  if (status.ok()) return status;
  return Status(status.code(), fmt::format("cuda:{}: {}", ordinal_, status.message()));
}

Status CudaContext::OfLibrary(const Status& status) const {
  if (status.ok()) return status;
  return Status(status.code(),
                fmt::format("cuda:{}: {}. hint: {}", ordinal_, status.message(), kHintSync));
}

Status CudaContext::Enter() const { return RIDGE_CUDA(*this, CtxSetCurrent, context_); }

void CudaContext::Keep(const Status& status) {
  const std::lock_guard<std::mutex> lock(error_lock_);
  if (error_.ok()) error_ = status;
}

Status CudaContext::error() const {
  const std::lock_guard<std::mutex> lock(error_lock_);
  return error_;
}

bool CudaContext::Ready() {
  if (!error().ok()) return false;
  const Status entered = Enter();
  Keep(entered);
  return entered.ok();
}

}  // namespace ridge::cuda

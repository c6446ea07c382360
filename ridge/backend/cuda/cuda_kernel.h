// CudaKernel: the launches of one node; CudaModule: the code that they run.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ridge/backend/backend.h"
#include "ridge/backend/cuda/cuda_context.h"
#include "ridge/backend/cuda/kernel_text.h"

namespace ridge::cuda {

// Code that a GPU has loaded.
class CudaModule {
 public:
  // Fails with the driver's errors.
  static Result<std::unique_ptr<CudaModule>> Load(CudaContext& context, const std::string& code);
  ~CudaModule();
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  Result<FunctionHandle> Find(const std::string& function) const;

 private:
  explicit CudaModule(CudaContext& context) : context_(context) {}

  CudaContext& context_;
  ModuleHandle handle_ = nullptr;
};

class CudaKernel : public Kernel {
 public:
  // `module` has the functions of `launches`; nodes of equal text share it.
  static Result<std::unique_ptr<Kernel>> Create(CudaContext& context,
                                                std::shared_ptr<CudaModule> module,
                                                std::vector<Launch> launches);
  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override;

 private:
  // Room for a launch's arguments, so that no launch allocates.
  struct Ready {
    Launch launch;
    FunctionHandle function;
    std::vector<DevicePtr> addresses;
    std::vector<void*> arguments;  // where the addresses stand
  };

  explicit CudaKernel(CudaContext& context) : context_(context) {}
  Status Enqueue(StreamHandle stream, Ready& ready, const KernelBuffers& buffers);

  CudaContext& context_;
  std::shared_ptr<CudaModule> module_;
  std::vector<Ready> ready_;
};

}  // namespace ridge::cuda

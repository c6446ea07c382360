#include "ridge/backend/cuda/cuda_kernel.h"

#include "ridge/backend/cuda/cuda_stream.h"

namespace ridge::cuda {
namespace {

DevicePtr AddressOf(const Argument& argument, const KernelBuffers& buffers) {
  const auto index = static_cast<size_t>(argument.index);
  switch (argument.kind) {
    case Argument::Kind::kInput:
      return reinterpret_cast<DevicePtr>(buffers.inputs[index]);
    case Argument::Kind::kOutput:
      return reinterpret_cast<DevicePtr>(buffers.outputs[index]);
    case Argument::Kind::kWorkspace:
      break;
  }
  return reinterpret_cast<DevicePtr>(buffers.workspace) +
         static_cast<DevicePtr>(argument.offset_bytes);
}

}  // namespace

Result<std::unique_ptr<CudaModule>> CudaModule::Load(CudaContext& context,
                                                     const std::string& code) {
  RIDGE_RETURN_IF_ERROR(context.Enter());
  std::unique_ptr<CudaModule> module(new CudaModule(context));
  RIDGE_RETURN_IF_ERROR(RIDGE_CUDA(context, ModuleLoadData, &module->handle_, code.data()));
  return module;
}

CudaModule::~CudaModule() {
  (void)context_.Enter();
  if (handle_ != nullptr) context_.driver().ModuleUnload(handle_);
}

Result<FunctionHandle> CudaModule::Find(const std::string& function) const {
  FunctionHandle handle = nullptr;
  RIDGE_RETURN_IF_ERROR(
      RIDGE_CUDA(context_, ModuleGetFunction, &handle, handle_, function.c_str()));
  return handle;
}

Result<std::unique_ptr<Kernel>> CudaKernel::Create(CudaContext& context,
                                                   std::shared_ptr<CudaModule> module,
                                                   std::vector<Launch> launches) {
  std::unique_ptr<CudaKernel> kernel(new CudaKernel(context));
  kernel->module_ = std::move(module);
  for (Launch& launch : launches) {
    RIDGE_ASSIGN_OR_RETURN(const FunctionHandle function, kernel->module_->Find(launch.function));
    Ready ready{std::move(launch), function, {}, {}};
    ready.addresses.resize(ready.launch.arguments.size());
    for (DevicePtr& address : ready.addresses) ready.arguments.push_back(&address);
    kernel->ready_.push_back(std::move(ready));
  }
  return std::unique_ptr<Kernel>(std::move(kernel));
}

Status CudaKernel::Enqueue(Stream& stream, const KernelBuffers& buffers) {
  const StreamHandle handle = static_cast<CudaStream&>(stream).handle();
  for (Ready& ready : ready_) {
    if (!context_.Ready()) return context_.error();
    context_.Keep(Enqueue(handle, ready, buffers));
  }
  return context_.error();
}

// The driver copies the arguments before it returns.
Status CudaKernel::Enqueue(StreamHandle stream, Ready& ready, const KernelBuffers& buffers) {
  for (size_t i = 0; i < ready.addresses.size(); ++i)
    ready.addresses[i] = AddressOf(ready.launch.arguments[i], buffers);
  return RIDGE_CUDA(context_, LaunchKernel, ready.function,
                    static_cast<unsigned int>(ready.launch.blocks), 1, 1,
                    static_cast<unsigned int>(ready.launch.threads), 1, 1, /*shared_bytes=*/0,
                    stream, ready.arguments.data(), nullptr);
}

}  // namespace ridge::cuda

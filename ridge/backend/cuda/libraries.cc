#include "ridge/backend/cuda/libraries.h"

#include <fmt/format.h>

#include "ridge/backend/cuda/cublaslt/matmul_library.h"
#include "ridge/backend/cuda/cudnn/cudnn_library.h"

namespace ridge::cuda {

std::string VersionAndPath(const KernelLibrary& library) {
  return fmt::format("{} ({})", library.version(), library.path());
}

Result<KernelLibraries> OpenLibraries(CudaDevice& device, const LibrarySearch& search,
                                      const std::function<void(const std::string&)>& say,
                                      const LibraryOptions& options) {
  KernelLibraries libraries;
  const auto add = [&](Result<std::unique_ptr<KernelLibrary>> library, const char* what) {
    const Status status = library.ok() ? Status() : library.status();
    if (library.ok()) {
      say(fmt::format("{} run on {}", what, VersionAndPath(**library)));
      libraries.push_back(std::move(*library));
    } else if (status.code() == ErrorCode::kUnsupported) {
      say(fmt::format("{} run on our own kernels: {}", what, status.message()));
      return Status();
    }
    return status;
  };
  RIDGE_RETURN_IF_ERROR(add(OpenCublasLt(device, search, options), "products"));
  RIDGE_RETURN_IF_ERROR(add(OpenCudnn(device.context(), device.gpu(), search, options),
                            "attention and convolutions"));
  return libraries;
}

}  // namespace ridge::cuda

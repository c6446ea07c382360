#include "ridge/backend/cuda/libraries.h"

#include <fmt/format.h>

#include "ridge/backend/cuda/cublaslt/matmul_library.h"
#include "ridge/backend/cuda/cudnn/cudnn_library.h"

namespace ridge::cuda {

KernelLibraries OpenLibraries(CudaDevice& device, const LibrarySearch& search,
                              const std::function<void(const std::string&)>& say,
                              const LibraryOptions& options) {
  KernelLibraries libraries;
  const auto add = [&](Result<std::unique_ptr<KernelLibrary>> library, const char* what) {
    if (library.ok()) {
      say(fmt::format("{} run on {}", what, (*library)->version()));
      libraries.push_back(std::move(*library));
    } else {
      say(fmt::format("{} run on our own kernels: {}", what, library.status().message()));
    }
  };
  add(OpenCublasLt(device, search, options.tf32), "products");
  add(OpenCudnn(device.context(), device.gpu(), search, options.tf32),
      "attention and convolutions");
  return libraries;
}

}  // namespace ridge::cuda

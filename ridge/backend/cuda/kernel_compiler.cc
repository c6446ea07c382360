#include "ridge/backend/cuda/kernel_compiler.h"

#include "ridge/backend/cuda/kernel_text.h"

namespace ridge::cuda {

Result<KernelCompiler> KernelCompiler::Open(const GpuFacts& gpu, const std::string& folder,
                                            const LibrarySearch& search) {
  RIDGE_ASSIGN_OR_RETURN(Nvrtc nvrtc, Nvrtc::Open(search));
  return KernelCompiler(std::move(nvrtc), Nvrtc::Architecture(gpu.major, gpu.minor), folder);
}

Result<std::string> KernelCompiler::Compile(const std::string& source) {
  const std::string whole = std::string(Prelude()) + source;
  const std::string key = nvrtc_.Signature(architecture_) + "\n" + whole;
  if (std::optional<std::string> code = cache_.Find(key)) {
    ++found_;
    return *std::move(code);
  }
  RIDGE_ASSIGN_OR_RETURN(Cubin cubin, nvrtc_.Compile(whole, architecture_));
  ++compiled_;
  cache_.Keep(key, cubin.code);
  return std::move(cubin.code);
}

}  // namespace ridge::cuda

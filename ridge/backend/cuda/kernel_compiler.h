// KernelCompiler: code of kernels' texts for one GPU: from the cache, or by NVRTC.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/backend/cuda/cubin_cache.h"
#include "ridge/backend/cuda/gpus.h"
#include "ridge/backend/cuda/nvrtc.h"

namespace ridge::cuda {

class KernelCompiler {
 public:
  // Kernels are cached in `folder`.  Fails with kDevice where NVRTC is not found.
  static Result<KernelCompiler> Open(const GpuFacts& gpu, const std::string& folder,
                                     const LibrarySearch& search = SearchForToolkit());

  // `source` is KernelText::source.  Fails as Nvrtc::Compile does.
  Result<std::string> Compile(const std::string& source);
  // By all cores; Compile() has the code, or what went wrong.
  void CompileAll(const std::vector<std::string>& sources);

  const Nvrtc& nvrtc() const { return nvrtc_; }
  int64_t compiled() const { return compiled_; }  // by NVRTC
  int64_t found() const { return found_; }        // in the cache

 private:
  KernelCompiler(Nvrtc nvrtc, std::string architecture, const std::string& folder)
      : nvrtc_(std::move(nvrtc)), architecture_(std::move(architecture)), cache_(folder) {}

  struct Compiled {
    Result<std::string> code;
    bool was_cached = false;
  };
  Compiled Make(const std::string& source) const;

  const Nvrtc nvrtc_;
  const std::string architecture_;
  const CubinCache cache_;
  std::map<std::string, Compiled> ready_;  // by source: nobody has asked for it yet
  int64_t compiled_ = 0, found_ = 0;
};

}  // namespace ridge::cuda

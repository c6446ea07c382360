#include "ridge/backend/cuda/kernel_compiler.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "ridge/backend/cuda/kernel_text.h"
#include "ridge/core/threads.h"

namespace ridge::cuda {

Result<KernelCompiler> KernelCompiler::Open(const GpuFacts& gpu, const std::string& folder,
                                            const LibrarySearch& search) {
  RIDGE_ASSIGN_OR_RETURN(Nvrtc nvrtc, Nvrtc::Open(search));
  return KernelCompiler(std::move(nvrtc), Nvrtc::Architecture(gpu.major, gpu.minor), folder);
}

KernelCompiler::Compiled KernelCompiler::Make(const std::string& source) const {
  const std::string whole = std::string(Prelude()) + source;
  const std::string key = nvrtc_.Signature(architecture_) + "\n" + whole;
  if (std::optional<std::string> code = cache_.Find(key)) return {*std::move(code), true};
  Result<Cubin> cubin = nvrtc_.Compile(whole, architecture_);
  if (!cubin.ok()) return {cubin.status(), false};
  cache_.Keep(key, cubin->code);
  return {std::move(cubin->code), false};
}

Result<std::string> KernelCompiler::Compile(const std::string& source) {
  const auto ready = ready_.find(source);
  Compiled made = ready == ready_.end() ? Make(source) : std::move(ready->second);
  if (ready != ready_.end()) ready_.erase(ready);
  if (made.code.ok()) ++(made.was_cached ? found_ : compiled_);
  return std::move(made.code);
}

void KernelCompiler::CompileAll(const std::vector<std::string>& sources) {
  std::vector<std::optional<Compiled>> made(sources.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < sources.size(); i = next++) made[i] = Make(sources[i]);
  };
  const size_t threads = std::min(sources.size(), static_cast<size_t>(AllowedCores()));
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  for (size_t i = 0; i < sources.size(); ++i) ready_.emplace(sources[i], *std::move(made[i]));
}

}  // namespace ridge::cuda

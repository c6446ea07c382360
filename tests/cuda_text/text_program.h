// Kernels' texts, compiled by the host's compiler and loaded.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "tests/cuda_text/host_threads.h"

namespace ridge::cuda_text {

class TextProgram {
 public:
  // `sources` are KernelText::source; equal ones are compiled once.  Fails with the compiler's
  // messages.
  static Result<std::unique_ptr<TextProgram>> Compile(const std::vector<std::string>& sources);
  ~TextProgram();
  TextProgram(const TextProgram&) = delete;
  TextProgram& operator=(const TextProgram&) = delete;

  // nullptr: not compiled here.
  const RidgeHostKernel* Find(const std::string& source, const std::string& function) const;
  const RidgeHostBlock** now() const { return now_; }

 private:
  TextProgram() = default;

  void* library_ = nullptr;
  const RidgeHostBlock** now_ = nullptr;
  std::map<std::string, size_t> sources_;
  std::map<std::pair<size_t, std::string>, const RidgeHostKernel*> kernels_;
};

}  // namespace ridge::cuda_text

#include "tests/cuda_text/text_program.h"

#include <dlfcn.h>

#include "ridge/backend/cuda/kernel_text.h"
#include "ridge/core/test_folder.h"
#include "tests/cuda_text/host_program.h"

namespace ridge::cuda_text {

Result<std::unique_ptr<TextProgram>> TextProgram::Compile(const std::vector<std::string>& sources) {
  std::unique_ptr<TextProgram> program(new TextProgram);
  std::vector<std::string> distinct;
  for (const std::string& source : sources) {
    if (program->sources_.emplace(source, distinct.size()).second) distinct.push_back(source);
  }
  const TempFolder folder;
  const std::string out = folder.File("kernels.so");
  const std::string wrong = CompileForHost(cuda::Prelude(), distinct, out);
  if (!wrong.empty()) return Status(ErrorCode::kInternal, wrong);
  program->library_ = dlopen(out.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (program->library_ == nullptr) return Status(ErrorCode::kInternal, dlerror());
  program->now_ = static_cast<const RidgeHostBlock**>(dlsym(program->library_, "ridge_block"));
  const auto* kernel =
      static_cast<const RidgeHostKernel*>(dlsym(program->library_, "ridge_kernels"));
  for (; kernel->name != nullptr; ++kernel) {
    const std::string name = kernel->name;
    const size_t colon = name.find(':');
    program->kernels_[{std::stoul(name.substr(0, colon)), name.substr(colon + 1)}] = kernel;
  }
  return program;
}

TextProgram::~TextProgram() {
  if (library_ != nullptr) dlclose(library_);
}

const RidgeHostKernel* TextProgram::Find(const std::string& source,
                                         const std::string& function) const {
  const auto source_at = sources_.find(source);
  if (source_at == sources_.end()) return nullptr;
  const auto at = kernels_.find({source_at->second, function});
  return at == kernels_.end() ? nullptr : at->second;
}

}  // namespace ridge::cuda_text

#include "tests/cuda_text/text_program.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <regex>

#include "ridge/backend/cuda/kernel_text.h"
#include "ridge/core/files.h"
#include "ridge/core/test_folder.h"

namespace ridge::cuda_text {
namespace {

constexpr const char* kBegin = R"(#include "host_cuda.h"
extern "C" const RidgeHostBlock* ridge_block = nullptr;
)";

std::vector<std::string> FunctionsOf(const std::string& source) {
  static const std::regex pattern(R"(RIDGE_KERNEL void (\w+)\()");
  std::vector<std::string> names;
  for (auto at = std::sregex_iterator(source.begin(), source.end(), pattern);
       at != std::sregex_iterator(); ++at)
    names.push_back((*at)[1]);
  return names;
}

bool HasBarriers(const std::string& source) {
  for (const char* name : {"__sync", "__shfl", "Block"}) {
    for (size_t at = source.find(name); at != std::string::npos; at = source.find(name, at + 1)) {
      if (at == 0 || std::isalnum(static_cast<unsigned char>(source[at - 1])) == 0) return true;
    }
  }
  return false;
}

// A source in a namespace of its own, with its shared memory in a section of its own.
std::string InNamespace(size_t k, const std::string& source) {
  return fmt::format(
      "#undef __shared__\n"
      "#define __shared__ static __attribute__((section(\"shared_{0}\")))\n"
      "extern char __start_shared_{0}[] __attribute__((weak, visibility(\"hidden\")));\n"
      "extern char __stop_shared_{0}[] __attribute__((weak, visibility(\"hidden\")));\n"
      "namespace n{0} {{\n#line 1 \"source_{0}\"\n{1}\n}}\n",
      k, source);
}

std::string Rows(size_t k, const std::string& source) {
  std::string rows;
  for (const std::string& name : FunctionsOf(source)) {
    rows += fmt::format(
        "  {{\"{0}:{1}\", [](void* const* a) {{ CallKernel(n{0}::{1}, a); }}, "
        "ParametersOf(n{0}::{1}), {2}, __start_shared_{0}, __stop_shared_{0}}},\n",
        k, name, HasBarriers(source));
  }
  return rows;
}

std::string CompilerCommand(const std::string& in, const std::string& out) {
#if defined(__SANITIZE_ADDRESS__)
  const char* sanitize = " -fsanitize=address";
#else
  const char* sanitize = "";
#endif
  return fmt::format(
      "{} -std=c++20 -O1 -w -fPIC -shared{} -ffp-contract=off -I{} -o {} {} 2>{}.log",
      RIDGE_HOST_COMPILER, sanitize, RIDGE_CUDA_TEXT_FOLDER, out, in, out);
}

}  // namespace

Result<std::unique_ptr<TextProgram>> TextProgram::Compile(const std::vector<std::string>& sources) {
  std::unique_ptr<TextProgram> program(new TextProgram);
  std::string text = kBegin, rows;
  text += cuda::Prelude();
  for (const std::string& source : sources) {
    const size_t k = program->sources_.size();
    if (!program->sources_.emplace(source, k).second) continue;
    text += InNamespace(k, source);
    rows += Rows(k, source);
  }
  text += "extern \"C\" const RidgeHostKernel ridge_kernels[] = {\n" + rows + "  {}};\n";

  const TempFolder folder;
  const std::string in = folder.File("kernels.cc"), out = folder.File("kernels.so");
  RIDGE_RETURN_IF_ERROR(WriteFileAtomically(in, text));
  if (std::system(CompilerCommand(in, out).c_str()) != 0) {
    const Result<std::string> log = ReadFile(out + ".log");
    return Status(ErrorCode::kInternal, log.ok() ? *log : log.status().message());
  }
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

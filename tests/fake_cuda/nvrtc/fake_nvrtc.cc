// libnvrtc.so.13 whose "cubin" is a library of the host, which the fake driver loads.
//
//   RIDGE_FAKE_NVRTC_ARCHITECTURES=sm_90    it knows only these; else all
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "ridge/backend/cuda/nvrtc.h"
#include "tests/cuda_text/host_program.h"
#include "tests/fake_cuda/fake_module.h"

namespace ridge::fake_cuda {
namespace {

using cuda::NvrtcCode;
using cuda::NvrtcProgram;

constexpr NvrtcCode kOk = 0, kInvalidOption = 5, kCompilation = 6;

struct FakeProgram {
  std::string source, log, cubin;
};
FakeProgram& In(NvrtcProgram program) { return *reinterpret_cast<FakeProgram*>(program); }

bool Knows(const std::string& architecture) {
  const char* const known = std::getenv("RIDGE_FAKE_NVRTC_ARCHITECTURES");
  return known == nullptr || std::strstr(known, architecture.c_str()) != nullptr;
}

// A folder that goes with this object.
class Folder {
 public:
  Folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "fake-nvrtc-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace

extern "C" {

NvrtcCode nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return kOk;
}

NvrtcCode nvrtcCreateProgram(NvrtcProgram* program, const char* source, const char*, int,
                             const char* const*, const char* const*) {
  *program = reinterpret_cast<NvrtcProgram>(new FakeProgram{source, "", ""});
  return kOk;
}

NvrtcCode nvrtcCompileProgram(NvrtcProgram handle, int count, const char* const* options) {
  FakeProgram& program = In(handle);
  for (int i = 0; i < count; ++i) {
    const std::string option = options[i], name = "--gpu-architecture=";
    if (option.starts_with(name) && !Knows(option.substr(name.size()))) return kInvalidOption;
  }
  const Folder folder;
  const std::string out = folder.File("kernel.so");
  program.log = cuda_text::CompileForHost("", {program.source}, out);
  if (!program.log.empty()) return kCompilation;
  std::ifstream file(out, std::ios::binary);
  const std::string library{std::istreambuf_iterator<char>(file), {}};
  program.cubin = kImageMark + std::to_string(library.size()) + "\n" + library;
  return kOk;
}

NvrtcCode nvrtcDestroyProgram(NvrtcProgram* program) {
  delete &In(*program);
  *program = nullptr;
  return kOk;
}

NvrtcCode nvrtcGetProgramLogSize(NvrtcProgram program, size_t* bytes) {
  *bytes = In(program).log.size() + 1;
  return kOk;
}

NvrtcCode nvrtcGetProgramLog(NvrtcProgram program, char* log) {
  std::strcpy(log, In(program).log.c_str());
  return kOk;
}

NvrtcCode nvrtcGetCUBINSize(NvrtcProgram program, size_t* bytes) {
  *bytes = In(program).cubin.size();
  return kOk;
}

NvrtcCode nvrtcGetCUBIN(NvrtcProgram program, char* cubin) {
  std::memcpy(cubin, In(program).cubin.data(), In(program).cubin.size());
  return kOk;
}

}  // extern "C"

}  // namespace ridge::fake_cuda

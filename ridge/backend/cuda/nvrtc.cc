#include "ridge/backend/cuda/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ridge::cuda {
namespace {

constexpr NvrtcCode kNvrtcSuccess = 0;
constexpr NvrtcCode kInvalidOption = 5;

const std::vector<std::string>& FixedOptions() {
  static const std::vector<std::string> options = {"--std=c++17", "--fmad=true",
                                                   "--disable-warnings"};
  return options;
}

// A program of NVRTC's, destroyed at the end.
struct OwnedProgram {
  NvrtcProgram program = nullptr;
  NvrtcCode (*destroy)(NvrtcProgram*) = nullptr;
  ~OwnedProgram() {
    if (program != nullptr) destroy(&program);
  }
};

}  // namespace

Result<Nvrtc> Nvrtc::Open(const LibrarySearch& search) {
  RIDGE_ASSIGN_OR_RETURN(
      const OpenLibrary library,
      OpenToolkitLibrary(search, "NVRTC", "libnvrtc.so.13", "nvidia-cuda-nvrtc"));
  Nvrtc nvrtc;
  RIDGE_RETURN_IF_ERROR(nvrtc.Resolve(library));
  return nvrtc;
}

Status Nvrtc::Resolve(const OpenLibrary& library) {
  path_ = library.path;
  const char* missing = nullptr;
#define RIDGE_NVRTC_RESOLVE(name, parameters)                                            \
  name##_ = reinterpret_cast<decltype(name##_)>(::dlsym(library.handle, "nvrtc" #name)); \
  if (name##_ == nullptr && missing == nullptr) missing = "nvrtc" #name;
  RIDGE_NVRTC_FUNCTIONS(RIDGE_NVRTC_RESOLVE)
#undef RIDGE_NVRTC_RESOLVE
  if (missing != nullptr) {
    return Status(ErrorCode::kDevice,
                  fmt::format("{} has no {}. hint: pip install nvidia-cuda-nvrtc", path_, missing));
  }
  int major = 0, minor = 0;
  Version_(&major, &minor);
  version_ = fmt::format("{}.{}", major, minor);
  return Status();
}

std::string Nvrtc::Architecture(int major, int minor) {
  return fmt::format("sm_{}{}", major, minor);
}

std::string Nvrtc::Signature(const std::string& architecture) const {
  return fmt::format("nvrtc {} {} {}", version_, architecture, fmt::join(FixedOptions(), " "));
}

std::string Nvrtc::LogOf(NvrtcProgram program) const {
  size_t bytes = 0;
  if (GetProgramLogSize_(program, &bytes) != kNvrtcSuccess || bytes <= 1) return "";
  std::string log(bytes, '\0');
  GetProgramLog_(program, log.data());
  log.resize(bytes - 1);
  return log;
}

Result<Cubin> Nvrtc::Compile(const std::string& source, const std::string& architecture,
                             const std::vector<std::string>& more_options) const {
  OwnedProgram owned{nullptr, DestroyProgram_};
  if (CreateProgram_(&owned.program, source.c_str(), "kernel.cu", 0, nullptr, nullptr) !=
      kNvrtcSuccess)
    return Status(ErrorCode::kDevice, fmt::format("{}: nvrtcCreateProgram failed", path_));
  std::vector<std::string> options = {"--gpu-architecture=" + architecture};
  for (const auto* list : {&FixedOptions(), &more_options})
    options.insert(options.end(), list->begin(), list->end());
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  const NvrtcCode code =
      CompileProgram_(owned.program, static_cast<int>(words.size()), words.data());
  Cubin cubin;
  cubin.log = LogOf(owned.program);
  if (code == kInvalidOption) {
    return Status(ErrorCode::kDevice,
                  fmt::format("NVRTC {} ({}) does not know the architecture {}. hint: pip install "
                              "--upgrade nvidia-cuda-nvrtc",
                              version_, path_, architecture));
  }
  if (code != kNvrtcSuccess) return Status(ErrorCode::kInternal, "NVRTC: " + cubin.log);
  size_t bytes = 0;
  GetCUBINSize_(owned.program, &bytes);
  cubin.code.resize(bytes);
  if (bytes == 0 || GetCUBIN_(owned.program, cubin.code.data()) != kNvrtcSuccess)
    return Status(ErrorCode::kDevice, fmt::format("{}: nvrtcGetCUBIN failed", path_));
  return cubin;
}

}  // namespace ridge::cuda

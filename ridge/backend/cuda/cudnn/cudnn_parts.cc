#include "ridge/backend/cuda/cudnn/cudnn_parts.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <filesystem>

#include "ridge/backend/cuda/driver.h"

namespace ridge::cuda {
namespace {

namespace fs = std::filesystem;

fs::path Resolved(const std::string& path) {
  std::error_code error;
  const fs::path resolved = fs::canonical(path, error);
  return error ? fs::path(path) : resolved;
}

int AddPart(dl_phdr_info* info, size_t /*bytes*/, void* parts) {
  if (fs::path(info->dlpi_name).filename().string().starts_with("libcudnn"))
    static_cast<std::set<std::string>*>(parts)->insert(Resolved(info->dlpi_name));
  return 0;
}

// The part of each of these functions is opened when it is called.
const char* FunctionThatFails(void* cudnn) {
  for (const char* name : {"cudnnGraphVersionCheck", "cudnnOpsVersionCheck", "cudnnCnnVersionCheck",
                           "cudnnAdvVersionCheck"}) {
    const auto check = reinterpret_cast<int (*)()>(::dlsym(cudnn, name));
    if (check != nullptr && check() != 0) return name;
  }
  return nullptr;
}

Status TwoCudnns(const std::string& cudnn, const std::string& part) {
  return Status(ErrorCode::kDevice,
                fmt::format("two cuDNNs are mixed: {} has opened {}. hint: take {} out of "
                            "LD_LIBRARY_PATH, or uninstall one of them",
                            cudnn, part, fs::path(part).parent_path().string()));
}

}  // namespace

std::set<std::string> OpenCudnnParts() {
  std::set<std::string> parts;
  ::dl_iterate_phdr(AddPart, &parts);
  return parts;
}

Status CheckCudnnParts(const OpenLibrary& cudnn, const std::set<std::string>& before) {
  const char* const failed = FunctionThatFails(cudnn.handle);
  const fs::path folder = Resolved(cudnn.path).parent_path();
  for (const std::string& part : OpenCudnnParts()) {
    if (!before.contains(part) && fs::path(part).parent_path() != folder)
      return TwoCudnns(cudnn.path, part);
  }
  if (failed == nullptr) return Status();
  return Status(ErrorCode::kDevice,
                fmt::format("{} has parts of another version: {} fails. hint: pip install "
                            "--force-reinstall nvidia-cudnn-cu13, or set {} to a whole cuDNN",
                            cudnn.path, failed, kPathVariable));
}

}  // namespace ridge::cuda

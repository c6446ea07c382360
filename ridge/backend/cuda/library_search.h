// Libraries of CUDA's toolkit: where they are looked for, and how one is opened.
#pragma once
#include <dlfcn.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge::cuda {

struct OpenLibrary {
  void* handle = nullptr;  // stays open until the process ends
  std::string path;        // of the file
};

// The first that loads counts; where none does, the first that is there is named.
struct LibrarySearch {
  std::vector<std::string> before = {};  // folders in front of all else
  std::vector<std::string> middle = {};  // those between what the process has open and the loader
  std::vector<std::string> behind = {};  // those that are left when the system's loader finds none
};
// RIDGE_CUDA_PATH, split at ':'; what the process has open; the program's folder and ../lib/ridge;
// the wheels of the active Python (VIRTUAL_ENV, CONDA_PREFIX); the system's loader;
// /usr/local/cuda.
LibrarySearch SearchForToolkit();

// Fails with kDevice: "libridge_cudnn.so is not found", or the loader's words for a file that is.
Result<OpenLibrary> FindLibrary(const LibrarySearch& places, const std::string& soname);

// The same; `name` and `wheel` are for the message: "NVRTC", "nvidia-cuda-nvrtc".
Result<OpenLibrary> OpenToolkitLibrary(const LibrarySearch& places, const std::string& name,
                                       const std::string& soname, const std::string& wheel);

// The same for a library that the program can do without: fails with kUnsupported.
Result<OpenLibrary> OpenOptionalLibrary(const LibrarySearch& places, const std::string& name,
                                        const std::string& soname, const std::string& wheel);

// Whether the library has the function.
template <typename Function>
bool FindFunction(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, symbol));
  return function != nullptr;
}
// Of kUnsupported: the library of this file is older than its interface.
Status LacksFunction(const std::string& path, const char* symbol, const std::string& wheel);
// "13.1.0" of 130100.
std::string VersionOfNumber(int64_t number);

// The file of an open library; `otherwise` where the loader does not know.
std::string PathOfLibrary(void* handle, const std::string& otherwise);

}  // namespace ridge::cuda

// Nvrtc: NVIDIA's compiler of CUDA text at run time, opened when a kernel is compiled.
//
// It needs no GPU and no driver.  What it makes is a cubin: code of one architecture, which the
// driver loads as it is.
#pragma once
#include <string>
#include <vector>

#include "ridge/backend/cuda/library_search.h"

namespace ridge::cuda {

// nvrtcProgram, nvrtcResult.
using NvrtcProgram = struct NvrtcProgramOpaque*;
using NvrtcCode = int;

#define RIDGE_NVRTC_FUNCTIONS(F)                                                             \
  F(Version, (int* major, int* minor))                                                       \
  F(CreateProgram, (NvrtcProgram * program, const char* source, const char* name, int count, \
                    const char* const* headers, const char* const* names))                   \
  F(CompileProgram, (NvrtcProgram program, int count, const char* const* options))           \
  F(DestroyProgram, (NvrtcProgram * program))                                                \
  F(GetProgramLogSize, (NvrtcProgram program, size_t * bytes))                               \
  F(GetProgramLog, (NvrtcProgram program, char* log))                                        \
  F(GetCUBINSize, (NvrtcProgram program, size_t * bytes))                                    \
  F(GetCUBIN, (NvrtcProgram program, char* cubin))

struct Cubin {
  std::string code;
  std::string log;  // warnings, and what options ask for
};

class Nvrtc {
 public:
  // Fails with kDevice: it is not found, or lacks a function.
  static Result<Nvrtc> Open(const LibrarySearch& search = SearchForToolkit());

  // "sm_90" of a compute capability 9.0.
  static std::string Architecture(int major, int minor);

  // `source` with its prelude.  Fails with kInternal and the compiler's words for a text that is
  // wrong, with kDevice for an architecture that it does not know.  Any number of threads at a
  // time.
  Result<Cubin> Compile(const std::string& source, const std::string& architecture,
                        const std::vector<std::string>& more_options = {}) const;

  const std::string& path() const { return path_; }
  const std::string& version() const { return version_; }  // "13.0"
  // All that the code depends on but for the source.
  std::string Signature(const std::string& architecture) const;

 private:
  Status Resolve(const OpenLibrary& library);
  std::string LogOf(NvrtcProgram program) const;

  std::string path_, version_;
#define RIDGE_NVRTC_MEMBER(name, parameters) NvrtcCode(*name##_) parameters = nullptr;
  RIDGE_NVRTC_FUNCTIONS(RIDGE_NVRTC_MEMBER)
#undef RIDGE_NVRTC_MEMBER
};

}  // namespace ridge::cuda

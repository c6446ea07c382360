// Driver: NVIDIA's libcuda.so.1, opened when it is asked for.  Nothing of CUDA is linked.
//
// Failures are of kDevice, one sentence with a hint: no driver, the stub of a toolkit, a driver of
// an older CUDA, a library without one of the functions.
#pragma once
#include <string>

#include "ridge/backend/cuda/driver_abi.h"
#include "ridge/core/status.h"

namespace ridge::cuda {

inline constexpr int kLeastCuda = 13000;       // 1000 * major + 10 * minor
inline constexpr char kLeastDriver[] = "580";  // the first that has it
inline constexpr char kPathVariable[] = "RIDGE_CUDA_PATH";

// Against a kernel that touches what is not its own.
inline constexpr char kHintSync[] =
    "--kernel-launch sync names the node, and compute-sanitizer the kernel";
// Against a GPU without memory.
inline constexpr char kHintMemory[] = "end what else uses it, which nvidia-smi lists";

std::string CudaVersionText(int version);  // 13000 -> "13.0"

// Where the library is looked for; the first hit counts, whether it is a driver or not.
struct DriverSearch {
  std::string places;                   // split at ':': its file, or folders that may have it
  std::string soname = "libcuda.so.1";  // in the process, then as the system's loader searches
};
DriverSearch SearchOfEnvironment();  // RIDGE_CUDA_PATH

enum class FoundBy {
  kVariable,  // RIDGE_CUDA_PATH
  kProcess,   // another library has opened it before
  kSystem,    // the system's loader
};

struct Driver : DriverTable {
  void* library = nullptr;  // stays open until the process ends
  std::string path;         // of the file
  FoundBy found_by = FoundBy::kSystem;
  int version = 0;  // of CUDA: the newest that it runs

  // "cuMemCreate failed: CUDA_ERROR_INVALID_VALUE (1)"; ok for kSuccess.  Of kDeviceMemory for
  // CUDA's error of this name, else of kDevice.
  Status Check(DriverCode code, const char* function) const;

  // cuInit: makes the GPUs known.  Fails when there is none.
  Status Initialize() const;
};

// Opens and resolves; starts nothing on a GPU.  Any number of times.
Result<Driver> LoadDriver(const DriverSearch& search = SearchOfEnvironment());

}  // namespace ridge::cuda

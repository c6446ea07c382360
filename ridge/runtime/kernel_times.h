// KernelTimes: measured seconds of kernels on disk: CACHE/profiles/<device>.kernels.json.
//
// `ridge bench device --tune MODEL` fills the file; with `--kernels tuned` its seconds choose
// between kernels.  They are valid for one type of CPU and number of threads, or of GPU, and one
// version of the kernel libraries.
#pragma once
#include <map>
#include <string>

#include "ridge/core/status.h"

namespace ridge {

struct KernelTimes {
  std::string device;   // DeviceProfile::id: CPU type and threads, or type of GPU
  std::string library;  // "oneDNN 3.2.1", "driver of CUDA 13.0, cuBLASLt 13.1.0"
  std::string made_at;
  std::map<std::string, double> kernel_s;  // by KernelChoice::key
};

std::string KernelTimesToJson(const KernelTimes& times);
// Reads any file of this form.  Fails with kInvalidData.
Result<KernelTimes> ReadKernelTimes(const std::string& path);

std::string KernelTimesPath(const std::string& device);
// Fails with kInvalidData when the file is missing, damaged, or of another library or device.
Result<KernelTimes> LoadKernelTimes(const std::string& device, const std::string& library);
Status SaveKernelTimes(const KernelTimes& times);

}  // namespace ridge

// Seconds of kernels that were measured on request, on disk: CACHE/profiles/<device>.kernels.json.
//
// `ridge bench device --tune MODEL` fills the file; with `--kernels tuned` its seconds choose
// between kernels.  They hold for one CPU type, number of threads and version of the kernels'
// library.
#pragma once
#include <map>
#include <string>

#include "ridge/core/status.h"

namespace ridge {

struct KernelTimes {
  std::string device;   // DeviceProfile::id: CPU type and threads
  std::string library;  // "oneDNN 3.2.1"
  std::string made_at;
  std::map<std::string, double> kernel_s;  // by KernelChoice::key
};

std::string KernelTimesToJson(const KernelTimes& times);
// From any file that holds them.  Fails with kInvalidData.
Result<KernelTimes> ReadKernelTimes(const std::string& path);

std::string KernelTimesPath(const std::string& device);
// Fails with kInvalidData when there are none, they are damaged, or were taken with another library
// or on another device.
Result<KernelTimes> LoadKernelTimes(const std::string& device, const std::string& library);
Status SaveKernelTimes(const KernelTimes& times);

}  // namespace ridge

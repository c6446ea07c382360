// GpuBytesLog: what a GPU has in use before CUDA is initialized, and by whom, as NVML tells it.
//
// NVML and the driver count in two ways, so only NVML's difference is taken: what the context took.
// Where NVML does not work nothing is known of other processes, and the readings begin with the
// context.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ridge/backend/cuda/library_search.h"
#include "ridge/backend/cuda/nvml.h"
#include "ridge/core/device_bytes.h"

namespace ridge::cuda {

class GpuBytesLog : public DeviceBytesLog {
 public:
  // Reads all GPUs, since only CUDA knows which one is meant.  A MIG instance is none of them.
  // REQUIRES: CUDA is not initialized.
  static std::unique_ptr<GpuBytesLog> Begin(const LibrarySearch& search = SearchForToolkit());

  // The context of this GPU is made, and what it takes with libraries is in `used_bytes`, which the
  // driver counts.
  void ContextIsMade(int ordinal, const std::string& uuid, int64_t used_bytes);

 private:
  struct Use {
    std::optional<int64_t> bytes;
    std::vector<NvmlProcess> processes;
  };
  void ReadAll();
  Use ReadUse(NvmlDevice device) const;
  std::vector<NvmlProcess> ReadProcesses(NvmlDevice device) const;
  OtherProcesses ReadOthers() override;
  std::vector<NvmlProcess> WithoutOwn(std::vector<NvmlProcess> processes) const;

  std::unique_ptr<NvmlLibrary> nvml_;  // null: it does not work
  std::map<std::string, Use> before_;  // by UUID
  std::optional<NvmlDevice> device_;   // the one that is meant
  std::set<unsigned int> others_;      // processes before the context
};

}  // namespace ridge::cuda

// Nvml: the counters of one GPU by NVML, which comes with NVIDIA's driver and is opened at run
// time.
//
// A counter that the GPU, the library or the user's rights do not give is empty.  A MIG instance
// has the memory that it uses; load, power, heat and clocks are of the whole GPU and are not told.
// Shares of SMs, tensor cores and bandwidth are those of Hopper and newer.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "ridge/backend/cuda/library_search.h"
#include "ridge/backend/cuda/nvml_abi.h"
#include "ridge/core/device_counters.h"

namespace ridge::cuda {

// The library, which is begun and ends with this.
class NvmlLibrary {
 public:
  // Fails with kDevice: no library, or one that does not work.
  static Result<std::unique_ptr<NvmlLibrary>> Open(const LibrarySearch& search);
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  const NvmlTable& table() const { return table_; }
  // Fails with kDevice where it knows no such GPU.
  Result<NvmlDevice> Find(const std::string& uuid) const;

 private:
  NvmlLibrary(const NvmlTable& table, std::string path) : table_(table), path_(std::move(path)) {}

  const NvmlTable table_;
  const std::string path_;
  bool started_ = false;
};

class Nvml : public CounterSource {
 public:
  // `uuid` is GpuFacts'; indices of NVML are not the driver's.  Fails with kDevice: no library, a
  // library that does not work, no such GPU.
  static Result<std::unique_ptr<Nvml>> Open(const std::string& uuid,
                                            const LibrarySearch& search = SearchForToolkit());
  ~Nvml() override;
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  DeviceCounters Read() override;

 private:
  Nvml(std::unique_ptr<NvmlLibrary> library, NvmlDevice device);
  void OpenGpm();
  void ReadLevels(DeviceCounters& counters) const;
  void ReadLimits(DeviceCounters& counters) const;
  void ReadTotals(DeviceCounters& counters) const;
  void ReadGpm(DeviceCounters& counters);
  void ReadShares(DeviceCounters& counters);

  const std::unique_ptr<NvmlLibrary> library_;
  const NvmlTable& table_;
  const NvmlDevice device_;
  NvmlGpmSample before_ = nullptr, now_ = nullptr;  // both or none
  double before_s_ = 0;                             // 0: there is no sample yet
  NvmlGpmMetrics metrics_ = {};
};

// What every whole GPU tells and this one does not, for a sentence: "power, clock"; "" for nothing.
std::string UntoldCounters(const DeviceCounters& counters);

}  // namespace ridge::cuda

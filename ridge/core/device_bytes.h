// DeviceBytes: where the memory of a device goes in a run, as planned and as read between stages.
//
// For devices with a memory of their own.  A reading is of the whole device, with the bytes of all
// processes, in the driver's count.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace ridge {

// Of one process.
struct DeviceParts {
  int64_t context = 0;  // with what libraries take when they are opened
  int64_t arena = 0;
  int64_t kernels = 0;  // code and local memory
  int64_t graphs = 0;   // steps that were recorded
  int64_t all() const { return context + arena + kernels + graphs; }
  bool operator==(const DeviceParts&) const = default;
};

// In use when a stage has ended: the context is made, the arena is mapped, each kernel has run, the
// steps are recorded, the run is over.
struct DeviceReadings {
  std::optional<int64_t> before;  // the context was made; empty: not known
  int64_t context = 0, arena = 0, kernels = 0, graphs = 0, end = 0;
  bool operator==(const DeviceReadings&) const = default;
};

struct OtherProcesses {
  int64_t count = 0;
  std::optional<int64_t> bytes = 0;  // empty: not told of all of them
  bool operator==(const OtherProcesses&) const = default;
};

enum class BytesVerdict {
  kProven,           // what was planned covers what is in use
  kMoreThanPlanned,  // it does not
  kLeak,             // more is in use than before the first step
  kShared,           // readings hold what other processes do
};
const char* BytesVerdictName(BytesVerdict verdict);  // "proven", "more_than_planned"

struct DeviceBytes {
  std::string device;      // "cuda:0"
  DeviceParts planned;     // before a kernel ran
  int64_t peak_bytes = 0;  // of the plan that was shown: after each kernel ran
  DeviceReadings used;
  std::string no_before;  // why `used.before` is empty
  OtherProcesses others;
  int64_t planned_staging = 0, staging = 0;  // locked pages of the host

  // Where `used.before` is not known, the context has it.
  DeviceParts measured() const;
  int64_t growth() const { return used.end - used.graphs; }  // in the run
  int64_t given_back() const;  // the largest decrease between two readings: ours only grow
  BytesVerdict verdict() const;
  bool operator==(const DeviceBytes&) const = default;
};

nlohmann::ordered_json DeviceBytesToJson(const DeviceBytes& bytes);
// Throws nlohmann's exceptions.
DeviceBytes DeviceBytesFromJson(const nlohmann::ordered_json& json);

// The bytes of a run, and who else uses its device.
class DeviceBytesLog {
 public:
  virtual ~DeviceBytesLog() = default;
  DeviceBytes& bytes() { return bytes_; }
  // The run is over.  `peak_bytes`: DeviceBytes'.
  void End(int64_t used_bytes, int64_t peak_bytes);

 protected:
  // As they are now.
  virtual OtherProcesses ReadOthers() = 0;
  void SeeOthers();  // of all readings the most

  DeviceBytes bytes_;
};

}  // namespace ridge

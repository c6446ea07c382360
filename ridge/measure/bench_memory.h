// BenchMemory: `ridge bench memory`: writes patterns over a device's memory and reads them back.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/backend/memory_pattern.h"
#include "ridge/core/device_counters.h"

namespace ridge {

struct BenchMemoryRequest {
  int64_t bytes = int64_t{1} << 30;  // whole pages are taken
  int64_t rounds = 1;                // of all patterns, each with other words where it has some
};

struct WrongWord {
  PatternCall call;
  uint64_t index = 0;  // of 8 bytes
  uint64_t is = 0;
};

struct PatternResult {
  MemoryPattern pattern = MemoryPattern::kAddress;
  double write_s = 0, verify_s = 0;  // of the fastest round
  int64_t wrong_words = 0;           // of all rounds
};

struct BenchMemoryResult {
  int64_t bytes = 0, rounds = 0;
  std::vector<PatternResult> patterns;
  std::optional<WrongWord> first_wrong;
  DeviceCounters counters;  // ECC's errors in this time, where the device tells them

  double bytes_per_s(double seconds) const { return static_cast<double>(bytes) / seconds; }
};

// `counters` may be nullptr.  Fails with kOutOfMemory, and as the device and `make` do; wrong words
// are a result.
Result<BenchMemoryResult> BenchMemory(Device& device, const MakePatternKernels& make,
                                      const BenchMemoryRequest& request, CounterSource* counters);

// kDevice, with the first wrong word, where there is one or ECC could not correct an error.
// `device` is its name in the message: "cuda:0".
Status CheckMemory(const std::string& device, const BenchMemoryResult& result);

std::string BenchMemoryToJson(const std::string& device, const BenchMemoryResult& result);

}  // namespace ridge

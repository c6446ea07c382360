// HostMemory: one mapping of the process, between guard pages.
#pragma once
#include <cstdint>
#include <memory>

#include "ridge/backend/device.h"
#include "ridge/core/status.h"

namespace ridge::cpu {

class HostMemory : public Memory {
 public:
  // Reserves address space; pages become resident when they are first touched.  `threads`: of the
  // team that makes it resident.  Fails with kOutOfMemory.
  static Result<std::unique_ptr<Memory>> Map(int64_t bytes, int threads);
  ~HostMemory() override;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  bool host_visible() const override { return true; }
  int64_t resident_bytes() const override;
  void MakeResident() override;

 private:
  HostMemory(std::byte* data, int64_t bytes, int threads);
  void Touch(int part, int parts);
  const int threads_;
};

}  // namespace ridge::cpu

// Arena: one memory mapping, which holds all values that the plan places.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ridge/core/status.h"

namespace ridge {

class Arena {
 public:
  // Reserves address space; pages become resident when they are first touched.
  // Fails with kOutOfMemory.
  static Result<Arena> Map(int64_t bytes);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  int64_t resident_bytes() const;  // pages that have become resident

  // Writes a zero to each page of part `part` of `parts`, which makes the part resident.
  void Touch(int part, int parts);

 private:
  Arena(std::byte* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace ridge

#include "ridge/runtime/timing_data.h"

#include <algorithm>
#include <cstring>

#include "ridge/core/rounding.h"
#include "ridge/runtime/transfers.h"

namespace ridge {

Status TimingData::Fill(DType dtype, Backend& backend, const Memory& memory, int64_t offset,
                        int64_t bytes) {
  const std::vector<std::byte>& pattern = PatternOf(dtype);
  const auto length = static_cast<int64_t>(pattern.size());
  Device& device = backend.device();
  return WriteBytes(device, memory, offset, bytes, [&](int64_t begin, int64_t end, std::byte* to) {
    const int64_t count = end - begin;
    const int parts = count < 4 * length ? 1 : backend.threads();
    const int64_t part_bytes = RoundUp(CeilDiv(count, parts), length);
    device.ForEachPart(parts, [&](int part) {
      const int64_t stop = std::min(count, (part + 1) * part_bytes);
      for (int64_t at = part * part_bytes; at < stop; at += length)
        std::memcpy(to + at, pattern.data(), static_cast<size_t>(std::min(length, stop - at)));
    });
  });
}

// Drawn once for a type, since drawing takes longer than copying.
const std::vector<std::byte>& TimingData::PatternOf(DType dtype) {
  std::vector<std::byte>& pattern = patterns_[dtype];
  if (!pattern.empty()) return pattern;
  constexpr int64_t kElements = 16 * 1024;
  pattern.resize(static_cast<size_t>(kElements * BytesPerElement(dtype)));
  for (int64_t i = 0; i < kElements; ++i)
    StoreFromDouble(dtype, pattern.data(), i, IsFloat(dtype) ? Draw() : 0);
  return pattern;
}

double TimingData::Draw() {
  state_ = state_ * 1664525 + 1013904223;
  return 0.02 * (state_ >> 8) * 0x1p-24 + 0.001;
}

}  // namespace ridge

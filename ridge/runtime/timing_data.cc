#include "ridge/runtime/timing_data.h"

#include <algorithm>
#include <cstring>

#include "ridge/backend/cpu/parallel.h"

namespace ridge {

void TimingData::Fill(DType dtype, int threads, std::byte* data, int64_t bytes) {
  const std::vector<std::byte>& pattern = PatternOf(dtype);
  const auto length = static_cast<int64_t>(pattern.size());
  cpu::ParallelFor(
      bytes < 4 * length ? 1 : threads, bytes, length, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at += length)
          std::memcpy(data + at, pattern.data(), static_cast<size_t>(std::min(length, end - at)));
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

#include "ridge/dist/sum_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ridge/core/reduced_floats.h"
#include "ridge/dist/sum_loops.h"

namespace ridge {
namespace {

template <typename T>
void AddTyped(const std::byte* a, const std::byte* b, std::byte* to, int64_t count) {
  const T* x = reinterpret_cast<const T*>(a);
  const T* y = reinterpret_cast<const T*>(b);
  T* sum = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) sum[i] = static_cast<T>(x[i] + y[i]);
}

const float* Floats(const std::byte* at) { return reinterpret_cast<const float*>(at); }
float* Floats(std::byte* at) { return reinterpret_cast<float*>(at); }

// Calls f(range, narrow) for the parts of [begin, end), in order.
template <typename F>
void ForEachRange(const WireBlock& wire, int64_t begin, int64_t end, F f) {
  int64_t at = begin;
  for (const ByteRange& range : wire.narrow) {
    if (range.end <= at) continue;
    if (range.begin >= end) break;
    if (range.begin > at) f(ByteRange{at, range.begin}, false);
    at = std::max(at, range.begin);
    f(ByteRange{at, std::min(end, range.end)}, true);
    at = std::min(end, range.end);
  }
  if (at < end) f(ByteRange{at, end}, false);
}

void AddAs(DType dtype, const std::byte* a, const std::byte* b, std::byte* to, int64_t count) {
  if (dtype == DType::kF64) return AddTyped<double>(a, b, to, count);
  if (dtype == DType::kI64) return AddTyped<uint64_t>(a, b, to, count);
  if (dtype == DType::kI32) return AddTyped<uint32_t>(a, b, to, count);
  AddFloats(Floats(a), Floats(b), Floats(to), count);
}

}  // namespace

WireBlock SumBlock::wire() const {
  WireBlock wire;
  wire.segment_bytes = segment_bytes;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t end = i + 1 < values.size() ? values[i + 1].offset_bytes : bytes;
    wire.Add(end - wire.bytes, values[i].narrow);
  }
  return wire;
}

Status CheckSums(const SumBlock& block) {
  for (const SumBlock::Values& values : block.values) {
    const DType t = values.dtype;
    if (t == DType::kF64 || t == DType::kF32 || t == DType::kI64 || t == DType::kI32) continue;
    return Status(ErrorCode::kUnsupported,
                  fmt::format("a sum in a tree is {}; it must be f64, f32, i64 or i32. hint: "
                              "--sums running",
                              DTypeName(t)));
  }
  return Status();
}

void AddSums(const SumBlock& block, int64_t begin, int64_t end, const std::byte* a,
             const std::byte* b, std::byte* to) {
  const auto behind = [](int64_t at, const SumBlock::Values& values) {
    return at < values.offset_bytes;
  };
  auto next = std::upper_bound(block.values.begin(), block.values.end(), begin, behind);
  if (next != block.values.begin()) --next;
  for (; next != block.values.end() && next->offset_bytes < end; ++next) {
    const SumBlock::Values& values = *next;
    const int64_t size = BytesPerElement(values.dtype);
    const int64_t first = std::max(begin, values.offset_bytes);
    const int64_t last = std::min(end, values.offset_bytes + values.elements * size);
    if (first >= last) continue;
    const int64_t count = (last - first) / size;
    if (values.narrow) {
      AddRoundedFloats(Floats(a + first), Floats(b + first), Floats(to + first), count);
    } else {
      AddAs(values.dtype, a + first, b + first, to + first, count);
    }
  }
}

void PackSums(const WireBlock& wire, int64_t begin, int64_t end, const std::byte* block,
              std::byte* sent) {
  std::byte* to = sent + wire.WireOffset(begin);
  ForEachRange(wire, begin, end, [&](const ByteRange& range, bool narrow) {
    if (narrow) {
      FloatsToBF16(Floats(block + range.begin), reinterpret_cast<uint16_t*>(to), range.bytes() / 4);
      to += range.bytes() / 2;
    } else {
      std::memcpy(to, block + range.begin, static_cast<size_t>(range.bytes()));
      to += range.bytes();
    }
  });
}

void UnpackSums(const WireBlock& wire, int64_t begin, int64_t end, const std::byte* sent,
                std::byte* block) {
  const std::byte* from = sent + wire.WireOffset(begin);
  ForEachRange(wire, begin, end, [&](const ByteRange& range, bool narrow) {
    if (narrow) {
      BF16ToFloats(reinterpret_cast<const uint16_t*>(from), Floats(block + range.begin),
                   range.bytes() / 4);
      from += range.bytes() / 2;
    } else {
      std::memcpy(block + range.begin, from, static_cast<size_t>(range.bytes()));
      from += range.bytes();
    }
  });
}

}  // namespace ridge

#include "ridge/dist/sum_block.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridge {
namespace {

template <typename T>
void AddTyped(const std::byte* a, const std::byte* b, std::byte* to, int64_t count) {
  const T* x = reinterpret_cast<const T*>(a);
  const T* y = reinterpret_cast<const T*>(b);
  T* sum = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) sum[i] = static_cast<T>(x[i] + y[i]);
}

void AddAs(DType dtype, const std::byte* a, const std::byte* b, std::byte* to, int64_t count) {
  if (dtype == DType::kF64) return AddTyped<double>(a, b, to, count);
  if (dtype == DType::kI64) return AddTyped<uint64_t>(a, b, to, count);
  if (dtype == DType::kI32) return AddTyped<uint32_t>(a, b, to, count);
  AddTyped<float>(a, b, to, count);
}

}  // namespace

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
    if (first < last) AddAs(values.dtype, a + first, b + first, to + first, (last - first) / size);
  }
}

}  // namespace ridge

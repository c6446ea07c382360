#include "ridge/backend/cpu/kernels/f64_tiles.h"

#include <algorithm>

namespace ridge::cpu {
namespace {

constexpr int64_t kBlock = 16;  // what the vectorized conversions do at once

const std::byte* At(DType dtype, const void* data, int64_t index) {
  return static_cast<const std::byte*>(data) + index * BytesPerElement(dtype);
}
std::byte* At(DType dtype, void* data, int64_t index) {
  return static_cast<std::byte*>(data) + index * BytesPerElement(dtype);
}

void RunElements(const F64Step& step, double* const* registers, int64_t count) {
  std::array<double, kMostF64Operands> args{};
  double* dst = registers[step.dst];
  for (int64_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < step.operand_count; ++k) args[k] = registers[step.operands[k]][i];
    dst[i] = step.op->elementwise({args.data(), step.operand_count}, step.attrs);
  }
}

void Round(DType to, double* values, int64_t count) {
  if (to == DType::kF64 || RoundF64Simd(to, values, count)) return;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t storage = 0;
    StoreFromDouble(to, &storage, 0, values[i]);
    values[i] = LoadAsDouble(to, &storage, 0);
  }
}

}  // namespace

void RunF64Tile(std::span<const F64Step> steps, double* const* registers, int64_t count) {
  for (const F64Step& step : steps) {
    if (!RunF64Simd(step, registers, count)) RunElements(step, registers, count);
    Round(step.to, registers[step.dst], count);
  }
}

void LoadDoubles(DType dtype, const void* from, int64_t at, double* to, int64_t count) {
  const std::byte* start = At(dtype, from, at);
  const int64_t done = LoadF64Simd(dtype, start, to, count) ? count / kBlock * kBlock : 0;
  ConvertToDouble(dtype, At(dtype, static_cast<const void*>(start), done), to + done, count - done);
}

void StoreDoubles(DType dtype, const double* from, void* to, int64_t at, int64_t count) {
  std::byte* start = At(dtype, to, at);
  const int64_t done = StoreF64Simd(dtype, from, start, count) ? count / kBlock * kBlock : 0;
  ConvertFromDouble(dtype, from + done, At(dtype, static_cast<void*>(start), done), count - done);
}

}  // namespace ridge::cpu

#include "ridge/backend/cuda/kernels/row_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kRowPackBytes = 16;
constexpr int kReadAhead = 8;  // elements of a thread that are asked for at once

constexpr std::string_view kLoadNumbers = R"cuda(
template <class T> RIDGE_FUNCTION Pack<R, $pack> LoadNumbers(const T* p, i64 group) {
  const Pack<T, $pack> stored = LoadPack<$pack>(p, group);
  Pack<R, $pack> numbers;
#pragma unroll
  for (int k = 0; k < $pack; ++k) numbers.at[k] = (R)Load(stored.at, k);
  return numbers;
}
)cuda";

constexpr std::string_view kKeptRow = R"cuda(
template <class T> struct Row {
  Pack<R, $pack> kept[$each];
  RIDGE_FUNCTION explicit Row(const T* p) {
    $each_group kept[j] = LoadNumbers(p, g);
  }
  RIDGE_FUNCTION Pack<R, $pack> at(int j, i64) const { return kept[j]; }
};
)cuda";

constexpr std::string_view kReadRow = R"cuda(
template <class T> struct Row {
  const T* p;
  RIDGE_FUNCTION explicit Row(const T* first) : p(first) {}
  RIDGE_FUNCTION Pack<R, $pack> at(i64, i64 g) const { return LoadNumbers(p, g); }
};
)cuda";

constexpr std::string_view kLogSumExpText = R"cuda(
constexpr i64 kNoPlace = 0x7fffffffffffffffll;
template <class P> RIDGE_FUNCTION int FirstLargest(const P& p, R largest) {
  int first = 0;
#pragma unroll
  for (int k = $pack - 1; k >= 0; --k)
    if (p.at[k] == largest || IsNan(p.at[k])) first = k;
  return first;
}
template <class Out>
RIDGE_FUNCTION Out BlockLogSumExp(const Row<$T>& own, R* scratch, i64& place) {
  R largest = -Infinity<R>(), sum = 0;
  place = kNoPlace;
  $each_group {
    const Pack<R, $pack> p = own.at(j, g);
    R next = largest;
#pragma unroll
    for (int k = 0; k < $pack; ++k) next = Larger(next, p.at[k]);
    if (next != largest) {
      if (!IsNan(largest)) place = (i64)g * $pack + FirstLargest(p, next);
      sum *= exp(largest - next);
    }
#pragma unroll
    for (int k = 0; k < $pack; ++k) sum += p.at[k] == next ? R(1) : exp(p.at[k] - next);
    largest = next;
  }
  const R most = BlockMax(largest, scratch);
  if (largest != most && !IsNan(largest)) place = kNoPlace;
  sum = BlockSum(largest == most ? sum : sum * exp(largest - most), scratch);
  return fabs(most) < Infinity<R>() ? (Out)most + (Out)log(sum) : (Out)most;
}
)cuda";

constexpr std::string_view kArgmaxText = R"cuda(
struct Lower {
  RIDGE_FUNCTION i64 operator()(i64 a, i64 b) const { return a < b ? a : b; }
};
RIDGE_FUNCTION i64 BlockArgmax(i64 place, i64* scratch) {
  place = BlockFold(place, kNoPlace, scratch, Lower());
  return place == kNoPlace ? 0 : place;
}
)cuda";

}  // namespace

int64_t RowShape::Blocks(int64_t most) const {
  return std::clamp<int64_t>(rows, 1, most * kBlockThreads / threads);
}

TextValues RowShape::Values() const {
  const std::string each_group = fmt::format(
      "\n#pragma unroll{}\n    for ({} j = 0, g = threadIdx.x; j < {}; ++j, g += {})\n"
      "      if (g < {})",
      keeps ? "" : fmt::format(" {}", std::max(kReadAhead / pack, 2)), IndexType(extent), each,
      threads, groups());
  return {{"rows", std::to_string(rows)},
          {"extent", fmt::format("{}ll", extent)},
          {"count", fmt::format("R({}.0)", std::max<int64_t>(extent, 1))},
          {"pack", std::to_string(pack)},
          {"threads", std::to_string(threads)},
          {"each", std::to_string(std::max<int64_t>(each, 1))},
          {"groups", std::to_string(groups())},
          {"each_group", each_group}};
}

RowShape ShapeOfRows(int64_t rows, int64_t extent, int64_t element_bytes, int64_t most_kept) {
  RowShape shape{.rows = rows, .extent = extent};
  const int64_t pack = std::max<int64_t>(kRowPackBytes / element_bytes, 1);
  shape.pack = extent % pack == 0 ? static_cast<int>(pack) : 1;
  const bool fits_warp = extent <= kWarpThreads * most_kept;
  shape.threads = fits_warp ? kWarpThreads : ThreadsForRow(shape.groups());
  shape.each = CeilDiv(shape.groups(), shape.threads);
  shape.keeps = shape.each * shape.pack <= most_kept;
  return shape;
}

std::string RowText(const RowShape& shape) {
  return FillText(kLoadNumbers, shape.Values()) +
         FillText(shape.keeps ? kKeptRow : kReadRow, shape.Values());
}

std::string LogSumExpText(const RowShape& shape, const std::string& stored) {
  TextValues values = shape.Values();
  values.emplace_back("T", stored);
  return FillText(kLogSumExpText, values) + std::string(kArgmaxText);
}

}  // namespace ridge::cuda

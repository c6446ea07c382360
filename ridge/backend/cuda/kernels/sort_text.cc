#include "ridge/backend/cuda/kernels/sort_text.h"

#include <fmt/format.h>

#include <bit>

#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kItems = 8;  // of a thread, neighbours
constexpr int64_t kTile = kItems * kBlockThreads;
constexpr int kMostDigitBits = 6;
constexpr int kScanThreads = 1024;

// counts[d][t]: how many items of thread t have the digit d.
constexpr std::string_view kSortFunctions = R"cuda(
RIDGE_FUNCTION u32 RowOfIndex(i64 index) {
  const i64 place = PlaceOfIndex(index, $extent);
  return place < 0 ? $extent : (u32)place;
}
typedef u16 DigitCounts[$digits][256];
template <class F> RIDGE_FUNCTION void CountDigits(DigitCounts& counts, F digit_of) {
  for (int d = 0; d < $digits; ++d) counts[d][threadIdx.x] = 0;
  const i64 first = (i64)blockIdx.x * $tile + threadIdx.x * $items;
  for (int k = 0; k < $items; ++k)
    if (first + k < $count) ++counts[digit_of(first + k)][threadIdx.x];
}
// Counts of digit d become the places among all of the block's; the sum is returned.
RIDGE_FUNCTION u32 BlockScanDigit(DigitCounts& counts, int d) {
  const int lane = threadIdx.x % 32;
  u16* own = counts[d] + lane * 8;
  u32 sum = 0;
  for (int k = 0; k < 8; ++k) sum += own[k];
  u32 end = sum;
  for (int distance = 1; distance < 32; distance *= 2) {
    const u32 before = __shfl_up_sync(0xffffffffu, end, distance);
    if (lane >= distance) end += before;
  }
  u32 place = end - sum;
  for (int k = 0; k < 8; ++k) {
    const u32 count = own[k];
    own[k] = (u16)place;
    place += count;
  }
  return __shfl_sync(0xffffffffu, end, 31);
}
)cuda";

// counts[i] becomes the sum of those before it.
constexpr std::string_view kScanText = R"cuda(
RIDGE_KERNEL void scan_counts(u32* counts) {
  __shared__ u32 warps[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i64 each = ($digits * $blocks + 1023) / 1024;
  const i64 first = threadIdx.x * each;
  const i64 last = first + each < $digits * $blocks ? first + each : $digits * $blocks;
  u32 sum = 0;
  for (i64 i = first; i < last; ++i) sum += counts[i];
  u32 end = sum;
  for (int distance = 1; distance < 32; distance *= 2) {
    const u32 before = __shfl_up_sync(0xffffffffu, end, distance);
    if (lane >= distance) end += before;
  }
  if (lane == 31) warps[warp] = end;
  __syncthreads();
  u32 place = end - sum;
  for (int w = 0; w < warp; ++w) place += warps[w];
  for (i64 i = first; i < last; ++i) {
    const u32 count = counts[i];
    counts[i] = place;
    place += count;
  }
}
)cuda";

constexpr std::string_view kCountText = R"cuda(
RIDGE_KERNEL void count_digits$pass($parameters, u32* counts) {
  __shared__ DigitCounts own;
  CountDigits(own, [&](i64 i) { return $row >> $shift & $mask; });
  __syncthreads();
  for (int d = threadIdx.x / 32; d < $digits; d += 8) {
    const u32 sum = BlockScanDigit(own, d);
    if (threadIdx.x % 32 == 0) counts[(i64)d * gridDim.x + blockIdx.x] = sum;
  }
}
)cuda";

constexpr std::string_view kPassText = R"cuda(
RIDGE_KERNEL void move_items$pass($parameters, const u32* places, u32* sorted, u32* sorted_numbers) {
  __shared__ DigitCounts own;
  __shared__ u32 starts[$digits];
  const u32 thread = threadIdx.x;
  CountDigits(own, [&](i64 i) { return $row >> $shift & $mask; });
  __syncthreads();
  for (int d = thread / 32; d < $digits; d += 8) {
    const u32 sum = BlockScanDigit(own, d);
    if (thread % 32 == 0) starts[d] = sum;
  }
  __syncthreads();
#if $blocks > 1
  if (thread < $digits) starts[thread] = places[(i64)thread * gridDim.x + blockIdx.x];
#else
  u32 start = 0;
  for (u32 d = 0; thread < $digits && d < thread; ++d) start += starts[d];
  __syncthreads();
  if (thread < $digits) starts[thread] = start;
#endif
  __syncthreads();
  const i64 first = (i64)blockIdx.x * $tile + thread * $items;
  for (int k = 0; k < $items; ++k) {
    const i64 i = first + k;
    if (i >= $count) continue;
    const u32 row = $row, digit = row >> $shift & $mask;
    const u32 at = starts[digit] + own[digit][thread]++;
    sorted[at] = row;
    sorted_numbers[at] = $number;
  }
}
)cuda";

constexpr std::string_view kFirstsText = R"cuda(
// firsts[r]: how many rows are less than r.
RIDGE_KERNEL void find_firsts(const u32* rows, u32* firsts) {
  for (i64 r = Thread(); r <= $extent; r += Threads()) {
    u32 low = 0, high = $count;
    while (low < high) {
      const u32 middle = low + (high - low) / 2;
      if (rows[middle] < r) low = middle + 1;
      else high = middle;
    }
    firsts[r] = low;
  }
}
)cuda";

class SortWriter {
 public:
  SortWriter(RowSort& sort, KernelText& text)
      : sort_(sort), text_(text), blocks_(CeilDiv(sort.count, kTile)) {
    // The row of no index is `extent` itself.
    const auto bits = static_cast<int>(std::bit_width(static_cast<uint64_t>(sort.extent)));
    passes_ = (bits + kMostDigitBits - 1) / kMostDigitBits;
    digit_bits_ = (bits + passes_ - 1) / passes_;
    const int digits = 1 << digit_bits_;
    values_ = {{"extent", fmt::format("{}u", sort.extent)},
               {"digits", std::to_string(digits)},
               {"tile", std::to_string(kTile)},
               {"items", std::to_string(kItems)},
               {"count", fmt::format("{}u", sort.count)},
               {"blocks", fmt::format("{}ll", blocks_)},
               {"mask", fmt::format("{}u", digits - 1)}};
    for (int64_t* at : {&rows_[0], &rows_[1], &numbers_[0], &numbers_[1]})
      *at = text.Reserve(4 * sort.count).offset_bytes;
    counts_ = text.Reserve(4 * digits * blocks_).offset_bytes;
    sort.firsts_at = text.Reserve(4 * (sort.extent + 1)).offset_bytes;
  }

  void Write() {
    text_.source += FillText(kSortFunctions, values_);
    if (blocks_ > 1) text_.source += FillText(kScanText, values_);
    for (int pass = 0; pass < passes_; ++pass) {
      AppendPassText(pass);
      AppendPassLaunches(pass);
    }
    sort_.rows_at = rows_[(passes_ - 1) % 2];
    sort_.numbers_at = numbers_[(passes_ - 1) % 2];
    text_.source += FillText(kFirstsText, values_);
    Append("find_firsts", BlocksFor(sort_.extent + 1), kBlockThreads,
           {Argument::Workspace(sort_.rows_at), Argument::Workspace(sort_.firsts_at)});
  }

 private:
  void AppendPassText(int pass) {
    auto values = values_;
    values.emplace_back("pass", std::to_string(pass));
    values.emplace_back("shift", std::to_string(pass * digit_bits_));
    values.emplace_back("parameters",
                        pass == 0 ? fmt::format("const {}* indices", StorageType(sort_.index_dtype))
                                  : "const u32* rows, const u32* numbers");
    values.emplace_back("row", pass == 0 ? "RowOfIndex(indices[i])" : "rows[i]");
    values.emplace_back("number", pass == 0 ? "(u32)i" : "numbers[i]");
    if (blocks_ > 1) text_.source += FillText(kCountText, values);
    text_.source += FillText(kPassText, values);
  }

  // From one pair of arrays to the other.
  void AppendPassLaunches(int pass) {
    const int from = (pass + 1) % 2, to = pass % 2;
    const Argument counts = Argument::Workspace(counts_);
    std::vector<Argument> count = {sort_.indices};
    if (pass > 0) count = {Argument::Workspace(rows_[from]), Argument::Workspace(numbers_[from])};
    count.push_back(counts);
    std::vector<Argument> move = count;
    move.push_back(Argument::Workspace(rows_[to]));
    move.push_back(Argument::Workspace(numbers_[to]));
    if (blocks_ > 1) {
      Append(fmt::format("count_digits{}", pass), blocks_, kBlockThreads, count);
      Append("scan_counts", 1, kScanThreads, {counts});
    }
    Append(fmt::format("move_items{}", pass), blocks_, kBlockThreads, move);
  }

  void Append(std::string function, int64_t blocks, int threads, std::vector<Argument> arguments) {
    text_.launches.push_back({std::move(function), blocks, threads, std::move(arguments)});
  }

  RowSort& sort_;
  KernelText& text_;
  const int64_t blocks_;
  int passes_ = 1, digit_bits_ = 1;
  int64_t rows_[2] = {}, numbers_[2] = {}, counts_ = 0;  // in the workspace
  std::vector<std::pair<std::string_view, std::string>> values_;
};

}  // namespace

bool CanSort(int64_t count, int64_t extent) {
  return count < (int64_t{1} << 31) && extent < (int64_t{1} << 31);
}

void AppendSort(RowSort& sort, KernelText& text) { SortWriter(sort, text).Write(); }

}  // namespace ridge::cuda

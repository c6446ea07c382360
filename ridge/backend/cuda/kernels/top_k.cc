// top_k: a block a line.  Few elements are taken one after the other, each the best of those behind
// the last; for more, the line is sorted, in shared memory where it fits.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ridge/backend/cuda/kernels/reduce_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kFewTaken = 16, kSharedEntries = 2048, kMostSorted = int64_t{1} << 28;
constexpr int64_t kMostEntries = int64_t{1} << 23;  // of workspace, unless one line has more

// The order of the result; entries from the extent on are padding and come last.
constexpr std::string_view kEntryText = R"cuda(
typedef $R R;
struct Entry { R value; int place; };
RIDGE_FUNCTION bool Before(Entry a, Entry b) {
  if (a.place >= $extent || b.place >= $extent) return a.place < b.place;
  if (IsNan(a.value) || IsNan(b.value)) {
    if (IsNan(a.value) && IsNan(b.value)) return a.place < b.place;
    return $largest ? IsNan(a.value) : IsNan(b.value);
  }
  if (a.value == b.value) return a.place < b.place;
  return $largest ? a.value > b.value : a.value < b.value;
}
RIDGE_FUNCTION Entry EntryAt(const $T* x, i64 first, int place) {
  Entry entry = {place < $extent ? (R)Load(x, first + (i64)place * $inner) : R(0), place};
  return entry;
}
RIDGE_FUNCTION void Write(const $T* x, i64 first, Entry entry, $T* values, i64* places, i64 at) {
  values[at] = x[first + (i64)entry.place * $inner];
  places[at] = entry.place;
}
)cuda";

constexpr std::string_view kTakeText = R"cuda(
struct Better {
  RIDGE_FUNCTION Entry operator()(Entry a, Entry b) const { return Before(b, a) ? b : a; }
};
RIDGE_KERNEL void top_k(const $T* x, $T* values, i64* places) {
  typedef Tile<1, 256, true> Own;
  __shared__ Entry scratch[256];
  for (i64 line = blockIdx.x; line < $lines; line += gridDim.x) {
    const i64 first = line / $inner * ($extent * $inner) + line % $inner;
    Entry last = {R(0), -1};
    for (int taken = 0; taken < $k; ++taken) {
      Entry best = {R(0), $extent};
      for (int place = threadIdx.x; place < $extent; place += 256) {
        const Entry entry = EntryAt(x, first, place);
        if ((taken == 0 || Before(last, entry)) && Before(entry, best)) best = entry;
      }
      last = Own::BlockJoin(best, scratch, Better());
      if (threadIdx.x == 0)
        Write(x, first, last, values, places, (line / $inner * $k + taken) * $inner + line % $inner);
    }
  }
}
)cuda";

// Batcher's bitonic sort.
constexpr std::string_view kSortText = R"cuda(
RIDGE_KERNEL void top_k($parameters) {
  $entries
  for (i64 line = blockIdx.x; line < $lines; line += gridDim.x) {
    const i64 first = line / $inner * ($extent * $inner) + line % $inner;
    for (int i = threadIdx.x; i < $padded; i += blockDim.x) entries[i] = EntryAt(x, first, i);
    __syncthreads();
    for (int run = 2; run <= $padded; run *= 2) {
      for (int distance = run / 2; distance > 0; distance /= 2) {
        for (int i = threadIdx.x; i < $padded / 2; i += blockDim.x) {
          const int low = i / distance * (2 * distance) + i % distance, high = low + distance;
          const Entry a = entries[low], b = entries[high];
          if (Before(b, a) == ((low & run) == 0)) {
            entries[low] = b;
            entries[high] = a;
          }
        }
        __syncthreads();
      }
    }
    for (int i = threadIdx.x; i < $k; i += blockDim.x)
      Write(x, first, entries[i], values, places, (line / $inner * $k + i) * $inner + line % $inner);
    __syncthreads();
  }
}
)cuda";

// Sorts lines, padded to a power of two, in shared memory or in workspace for each block.
void WriteSort(int64_t lines, int64_t extent, const char* stored, bool wide, TextValues values,
               KernelText& text) {
  const auto padded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
  const bool shared = padded <= kSharedEntries;
  const int64_t most = std::max<int64_t>(kMostEntries / padded, 1);
  const int64_t blocks = std::min(BlocksForRows(lines), shared ? lines : most);
  const std::string own = fmt::format("const {0}* x, {0}* values, i64* places", stored);
  values.emplace_back("parameters", shared ? own : own + ", Entry* workspace");
  values.emplace_back("padded", std::to_string(padded));
  values.emplace_back(
      "entries",
      shared ? fmt::format("__shared__ Entry entries[{}];", padded)
             : fmt::format("Entry* const entries = workspace + (i64)blockIdx.x * {};", padded));
  text.source += FillText(kSortText, values);
  text.launches = {{"top_k",
                    blocks,
                    shared ? ThreadsForRow(padded / 2) : 512,
                    {Argument::Input(0), Argument::Output(0), Argument::Output(1)}}};
  if (shared) return;
  text.workspace_bytes = RoundUp(blocks * padded * (wide ? 16 : 8), 256);
  text.launches[0].arguments.push_back(Argument::Workspace());
}

const char* WriteTopK(const OpDef&, const OpCall& call, KernelText& text) {
  const TensorType& x = call.inputs[0];
  const AxisView view = ViewAxis(x.dims, CallAxis(call));
  const int64_t lines = view.outer * view.inner, k = call.integer("k");
  if (!StoresAll(call)) return refusal::kDType;
  if (view.extent > kMostSorted) return refusal::kSize;
  const std::string compute = ComputeType(x.dtype);
  const TextValues values = {{"R", compute},
                             {"T", StorageType(x.dtype)},
                             {"extent", std::to_string(view.extent)},
                             {"inner", fmt::format("{}ll", view.inner)},
                             {"lines", std::to_string(lines)},
                             {"k", std::to_string(k)},
                             {"largest", call.integer("largest") != 0 ? "true" : "false"}};
  text.source = FillText(kEntryText, values);
  if (k > kFewTaken) {
    WriteSort(lines, view.extent, StorageType(x.dtype), compute == "double", values, text);
    return nullptr;
  }
  text.source += std::string(ReduceTileText()) + FillText(kTakeText, values);
  text.launches = {{"top_k",
                    BlocksForRows(lines),
                    kBlockThreads,
                    {Argument::Input(0), Argument::Output(0), Argument::Output(1)}}};
  return nullptr;
}

}  // namespace

TextKernelDef TopKTextKernel() {
  return {.name = "cuda.top_k", .ops = {"top_k"}, .write = WriteTopK};
}

}  // namespace ridge::cuda

#include "ridge/backend/cuda/kernels/move_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kWordsAtOnce = 4;

// Whole groups have no conditions, so that all their loads come first.
constexpr std::string_view kMoveText = R"cuda(
RIDGE_KERNEL void $name($parameters, Word* y) {
  const Index threads = (Index)Threads();
  Index first = (Index)Thread();
#if $each > 1
  for (; first < $count - ($each - 1) * threads; first += $each * threads) {
    Word words[$each];
#pragma unroll
    for (int k = 0; k < $each; ++k) {
      const Index e = first + k * threads;
      words[k] = $value;
    }
#pragma unroll
    for (int k = 0; k < $each; ++k) {
      const Index e = first + k * threads;
      y[$to] = words[k];
    }
  }
#endif
  for (Index e = first; e < $count; e += threads) y[$to] = $value;
}
)cuda";

std::string PlaceText(const Dims& dims, const Dims& strides, int64_t first) {
  const std::string offset = OffsetText(dims, strides, "e");
  return first == 0 ? offset : fmt::format("{} + {}", first, offset);
}

// The same move by words of `width` elements.
void Widen(StridedMove& move, int64_t width) {
  if (width == 1) return;
  move.dims.back() /= width;
  for (size_t d = 0; d + 1 < move.dims.size(); ++d) {
    move.from[d] /= width;
    move.to[d] /= width;
  }
  move.from_first /= width;
  move.to_first /= width;
}

int64_t WordBytesOf(const StridedMove& move, int64_t element_bytes) {
  if (move.dims.empty() || move.from.back() != 1 || move.to.back() != 1) return element_bytes;
  std::vector<int64_t> elements = {move.dims.back(), move.from_first, move.to_first};
  for (size_t d = 0; d + 1 < move.dims.size(); ++d) {
    elements.push_back(move.from[d]);
    elements.push_back(move.to[d]);
  }
  return WordBytes(element_bytes, elements);
}

}  // namespace

const char* WordType(int64_t bytes) {
  switch (bytes) {
    case 1:
      return "u8";
    case 2:
      return "u16";
    case 4:
      return "u32";
    case 8:
      return "u64";
    default:
      return "Pack<u64, 2>";
  }
}

int64_t WordBytes(int64_t element_bytes, const std::vector<int64_t>& elements) {
  int64_t bytes = 16;
  for (const int64_t count : elements) {
    while (bytes > element_bytes && count * element_bytes % bytes != 0) bytes /= 2;
  }
  return bytes;
}

std::string WordLiteral(int64_t word_bytes, DType dtype, double value) {
  uint64_t element = 0, bits = 0;
  const auto bytes = static_cast<size_t>(BytesPerElement(dtype));
  StoreFromDouble(dtype, &element, 0, value);
  for (size_t at = 0; at < sizeof bits; at += bytes)
    std::memcpy(reinterpret_cast<char*>(&bits) + at, &element, bytes);
  return word_bytes == 16 ? fmt::format("Pack<u64, 2>{{{{{0:#x}ull, {0:#x}ull}}}}", bits)
                          : fmt::format("({}){:#x}ull", WordType(word_bytes), bits);
}

void StridedMove::Merge() {
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) Erase(d);
  }
  for (size_t d = dims.size(); d-- > 1;) {
    if (from[d - 1] != from[d] * dims[d] || to[d - 1] != to[d] * dims[d]) continue;
    dims[d] *= dims[d - 1];
    Erase(d - 1);
  }
}

void StridedMove::Erase(size_t d) {
  for (Dims* list : {&dims, &from, &to})
    list->erase(list->begin() + static_cast<std::ptrdiff_t>(d));
}

std::string MoveTypes(int64_t word_bytes, int64_t reach) {
  return fmt::format("typedef {} Word;\ntypedef {} Index;\n", WordType(word_bytes),
                     IndexType(reach));
}

void AppendMove(const MoveKernel& kernel, KernelText& text) {
  const bool several = kernel.count > kMostBlocks * kBlockThreads;
  const int64_t each = several ? kWordsAtOnce : 1;
  text.source += FillText(kMoveText, {{"name", kernel.name},
                                      {"parameters", kernel.parameters},
                                      {"count", std::to_string(kernel.count)},
                                      {"each", std::to_string(each)},
                                      {"value", kernel.value},
                                      {"to", kernel.to}});
  std::vector<Argument> arguments = kernel.arguments;
  arguments.push_back(Argument::Output(0));
  text.launches.push_back(
      {kernel.name, BlocksFor(CeilDiv(kernel.count, each)), kBlockThreads, std::move(arguments)});
}

void WriteMove(StridedMove move, int64_t element_bytes, int64_t reach, KernelText& text) {
  move.Merge();
  const int64_t bytes = WordBytesOf(move, element_bytes);
  Widen(move, bytes / element_bytes);
  text.source = MoveTypes(bytes, reach);
  AppendMove({.name = "move",
              .parameters = "const Word* x",
              .arguments = {Argument::Input(0)},
              .value = fmt::format("x[{}]", PlaceText(move.dims, move.from, move.from_first)),
              .to = PlaceText(move.dims, move.to, move.to_first),
              .count = ElementCount(move.dims)},
             text);
}

}  // namespace ridge::cuda

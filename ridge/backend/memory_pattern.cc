#include "ridge/backend/memory_pattern.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ridge/backend/host_kernel.h"
#include "ridge/core/random.h"

namespace ridge {
namespace {

constexpr int64_t kChunkWords = 512;
using Chunk = std::array<uint64_t, kChunkWords>;

void Fill(const PatternCall& call, uint64_t first_word, Chunk& chunk) {
  if (call.pattern == MemoryPattern::kRandom) {
    static_assert(sizeof(Chunk) % (16 * kDrawBlocks) == 0);
    std::array<uint32_t, 2 * kChunkWords> words;
    DrawWords({.seed = call.round}, /*sample=*/0, first_word / 2, kChunkWords / 2, words.data());
    for (size_t i = 0; i < chunk.size(); ++i)
      chunk[i] = words[2 * i] | static_cast<uint64_t>(words[2 * i + 1]) << 32;
    return;
  }
  for (size_t i = 0; i < chunk.size(); ++i) chunk[i] = PatternWord(call, first_word + i);
}

// Calls f(chunk's first word) for the chunks of a part.
template <typename F>
void ForChunks(const PatternCall& call, int parts, int part, const F& f) {
  const int64_t chunks = call.bytes / static_cast<int64_t>(sizeof(Chunk));
  const int64_t begin = chunks * part / parts, end = chunks * (part + 1) / parts;
  for (int64_t chunk = begin; chunk < end; ++chunk) f(static_cast<uint64_t>(chunk * kChunkWords));
}

class HostWrite : public HostKernel<HostWrite> {
 public:
  HostWrite(Device& device, int threads, const PatternCall& call)
      : device_(device), threads_(threads), call_(call) {}

  Status Run(const KernelBuffers& buffers) {
    auto* const memory = static_cast<uint64_t*>(buffers.outputs[0]);
    device_.ForEachPart(threads_, [&](int part) {
      Chunk chunk;
      ForChunks(call_, threads_, part, [&](uint64_t first_word) {
        Fill(call_, first_word, chunk);
        std::memcpy(memory + first_word, chunk.data(), sizeof(chunk));
      });
    });
    return Status();
  }

 private:
  Device& device_;
  const int threads_;
  const PatternCall call_;
};

class HostVerify : public HostKernel<HostVerify> {
 public:
  HostVerify(Device& device, int threads, const PatternCall& call)
      : device_(device), threads_(threads), call_(call) {}

  Status Run(const KernelBuffers& buffers) {
    const auto* const memory = static_cast<const uint64_t*>(buffers.inputs[0]);
    auto* const found = static_cast<PatternErrors*>(buffers.outputs[0]);
    std::fill_n(found, kPatternParts, PatternErrors());
    device_.ForEachPart(threads_, [&](int part) {
      Chunk chunk;
      ForChunks(call_, threads_, part, [&](uint64_t first_word) {
        Fill(call_, first_word, chunk);
        if (std::memcmp(memory + first_word, chunk.data(), sizeof(chunk)) != 0)
          Count(chunk, memory + first_word, first_word, found[part]);
      });
    });
    return Status();
  }

 private:
  static void Count(const Chunk& chunk, const uint64_t* memory, uint64_t first_word,
                    PatternErrors& errors) {
    for (size_t i = 0; i < chunk.size(); ++i) {
      if (memory[i] == chunk[i]) continue;
      ++errors.words;
      errors.first_word = std::min(errors.first_word, first_word + i);
    }
  }

  Device& device_;
  const int threads_;
  const PatternCall call_;
};

}  // namespace

const char* MemoryPatternName(MemoryPattern pattern) {
  switch (pattern) {
    case MemoryPattern::kAddress:
      return "address";
    case MemoryPattern::kInverse:
      return "inverse";
    case MemoryPattern::kRandom:
      return "random";
    case MemoryPattern::kWalkingOnes:
      return "walking ones";
  }
  return "";
}

uint64_t PatternWord(const PatternCall& call, uint64_t index) {
  switch (call.pattern) {
    case MemoryPattern::kAddress:
      return index * 8;
    case MemoryPattern::kInverse:
      return ~(index * 8);
    case MemoryPattern::kRandom: {
      const auto words = DrawBlock({.seed = call.round}, /*sample=*/0, index / 2);
      const size_t at = 2 * (index % 2);
      return words[at] | static_cast<uint64_t>(words[at + 1]) << 32;
    }
    case MemoryPattern::kWalkingOnes:
      return uint64_t{1} << (index + call.round) % 64;
  }
  return 0;
}

PatternKernels MakeHostPatternKernels(Device& device, int threads, const PatternCall& call) {
  const int parts = std::min(threads, kPatternParts);
  return {std::make_unique<HostWrite>(device, parts, call),
          std::make_unique<HostVerify>(device, parts, call)};
}

}  // namespace ridge

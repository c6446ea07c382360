// MemoryPattern: words that memory is tested with, and the kernels that write and verify them.
//
// A word is a function of its place and the round, so what is read back is checked without a copy.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "ridge/backend/backend.h"

namespace ridge {

enum class MemoryPattern : uint8_t {
  kAddress,      // its own offset in bytes: finds addresses that reach the wrong word
  kInverse,      // the complement of that
  kRandom,       // of Philox, keyed by the round
  kWalkingOnes,  // one bit, that moves with the word and with the round
};
inline constexpr MemoryPattern kMemoryPatterns[] = {MemoryPattern::kAddress,
                                                    MemoryPattern::kInverse, MemoryPattern::kRandom,
                                                    MemoryPattern::kWalkingOnes};
const char* MemoryPatternName(MemoryPattern pattern);  // "walking ones"

struct PatternCall {
  MemoryPattern pattern = MemoryPattern::kAddress;
  int64_t bytes = 0;  // a multiple of 4096
  uint32_t round = 0;
};
// Word `index`, of 8 bytes.
uint64_t PatternWord(const PatternCall& call, uint64_t index);

// What a part of the threads found.
struct PatternErrors {
  uint64_t words = 0;           // that are wrong
  uint64_t first_word = ~0ULL;  // the index of one; without any the largest number
};
inline constexpr int kPatternParts = 1056;

struct PatternKernels {
  std::unique_ptr<Kernel> write;   // output: the memory
  std::unique_ptr<Kernel> verify;  // input: the memory; output: kPatternParts PatternErrors
};
// `device` runs host threads; it outlives the kernels.
PatternKernels MakeHostPatternKernels(Device& device, int threads, const PatternCall& call);

// As MakeHostPatternKernels, of a device.
using MakePatternKernels = std::function<Result<PatternKernels>(const PatternCall& call)>;

}  // namespace ridge

// A thread has two words at a time, which are a block of Philox.  What is wrong is counted by
// blocks, in an order of their own: no atomics.
#include "ridge/backend/cuda/pattern_kernels.h"

#include <fmt/format.h>

#include "ridge/backend/cuda/cuda_kernel.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kPatternText = R"cuda(
typedef Pack<u64, 2> Pair;
RIDGE_FUNCTION Pair Expected(u64 pair) {
  Pair words;
$words
  return words;
}
struct Least {
  RIDGE_FUNCTION u64 operator()(u64 a, u64 b) const { return a < b ? a : b; }
};
RIDGE_KERNEL void write_pattern(u64* memory) {
  for (i64 pair = Thread(); pair < $pairs; pair += Threads())
    StorePack(memory, pair, Expected(pair));
}
RIDGE_KERNEL void verify_pattern(const u64* memory, u64* found) {
  __shared__ u64 scratch[32];
  u64 wrong = 0, first = ~(u64)0;
  for (i64 pair = Thread(); pair < $pairs; pair += Threads()) {
    const Pair is = LoadPack<2>(memory, pair), should = Expected(pair);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      if (is.at[k] == should.at[k]) continue;
      ++wrong;
      first = Least()(first, 2 * pair + k);
    }
  }
  wrong = BlockFold(wrong, (u64)0, scratch, Sum());
  first = BlockFold(first, ~(u64)0, scratch, Least());
  if (threadIdx.x == 0) {
    found[2 * blockIdx.x] = wrong;
    found[2 * blockIdx.x + 1] = first;
  }
}
)cuda";

constexpr std::string_view kRandomWords = R"cuda(
  u32 draws[4] = {(u32)pair, (u32)(pair >> 32), 0, 0};
  Philox($round, 0u, draws);
  words.at[0] = draws[0] | (u64)draws[1] << 32;
  words.at[1] = draws[2] | (u64)draws[3] << 32;)cuda";

constexpr std::string_view kEachWord = R"cuda(
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const u64 index = 2 * pair + k;
    words.at[k] = $word;
  })cuda";

std::string WordsText(const PatternCall& call) {
  const auto each = [](std::string word) {
    return FillText(kEachWord, {{"word", std::move(word)}});
  };
  switch (call.pattern) {
    case MemoryPattern::kAddress:
      return each("index * 8");
    case MemoryPattern::kInverse:
      return each("~(index * 8)");
    case MemoryPattern::kRandom:
      return FillText(kRandomWords, {{"round", fmt::format("{}u", call.round)}});
    case MemoryPattern::kWalkingOnes:
      return each(fmt::format("(u64)1 << (index + {}) % 64", call.round % 64));
  }
  return "";
}

}  // namespace

KernelText PatternText(const PatternCall& call) {
  KernelText text;
  text.source = FillText(
      kPatternText, {{"words", WordsText(call)}, {"pairs", fmt::format("{}ll", call.bytes / 16)}});
  text.launches = {{.function = "write_pattern",
                    .blocks = kPatternParts,
                    .threads = kBlockThreads,
                    .arguments = {Argument::Output(0)}},
                   {.function = "verify_pattern",
                    .blocks = kPatternParts,
                    .threads = kBlockThreads,
                    .arguments = {Argument::Input(0), Argument::Output(0)}}};
  return text;
}

Result<PatternKernels> MakeCudaPatternKernels(CudaDevice& device, KernelCompiler& compiler,
                                              const PatternCall& call) {
  const KernelText text = PatternText(call);
  RIDGE_ASSIGN_OR_RETURN(const std::string code, compiler.Compile(text.source));
  RIDGE_ASSIGN_OR_RETURN(std::shared_ptr<CudaModule> module,
                         CudaModule::Load(device.context(), code));
  PatternKernels kernels;
  RIDGE_ASSIGN_OR_RETURN(kernels.write,
                         CudaKernel::Create(device.context(), module, {text.launches[0]}));
  RIDGE_ASSIGN_OR_RETURN(kernels.verify,
                         CudaKernel::Create(device.context(), module, {text.launches[1]}));
  return kernels;
}

}  // namespace ridge::cuda

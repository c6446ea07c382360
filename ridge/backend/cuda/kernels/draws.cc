// dropout, random_uniform and random_normal: a thread takes the four words of a block of Philox
// (core/random.h), which are four neighbours of a sample.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

// Words of block `block` of a sample.
constexpr std::string_view kDrawFunctions = R"cuda(
typedef $R R;
RIDGE_FUNCTION void DrawBlock(const i64* rng, i64 sample, i64 block, u32 (&words)[4]) {
  const u64 seed = (u64)rng[0];
  words[0] = (u32)block;
  words[1] = (u32)((u64)block >> 32);
  words[2] = (u32)(rng[2] + sample);
  words[3] = (u32)rng[1];
  Philox((u32)seed ^ (u32)(seed >> 32), $stream, words);
}
RIDGE_FUNCTION R Uniform(u32 word) { return (R)(word >> 8) * R(5.9604644775390625e-8); }
// sqrt(-2 log((word + 1) / 2^32)); near 1 by the distance to it.
RIDGE_FUNCTION R Radius(u32 word) {
  const R step = R(2.3283064365386963e-10);
  const R logarithm =
      word < 0x80000000u ? log((R)(word + 1) * step) : log1p(-(R)(0xffffffffu - word) * step);
  return sqrt(R(-2) * logarithm);
}
// radius * (cosine, sine) of word / 2^32 turns: quarters, and an angle up to pi / 4.
RIDGE_FUNCTION void Turn(R radius, u32 word, R& x, R& y) {
  const u32 quarter = (word + 0x20000000u) >> 30;
  const R angle = (R)(int)(word - (quarter << 30)) * R(1.4629180792671596e-9);
  const R c = radius * cos(angle), s = radius * sin(angle);
  x = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
  y = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
}
)cuda";

constexpr std::string_view kDrawText = R"cuda(
RIDGE_KERNEL void draw($x_parameter const i64* rng, $T* y) {
  for ($Index group = ($Index)Thread(); group < $groups; group += ($Index)Threads()) {
    const $Index sample = group / $blocks, block = group % $blocks;
    u32 words[4];
    DrawBlock(rng, sample, block, words);
    R numbers[4];
$numbers
$store  }
}
)cuda";

constexpr std::string_view kDropoutNumbers = R"cuda(
#pragma unroll
    for (int k = 0; k < 4; ++k) numbers[k] = words[k] >> 8 >= $least ? $scale : R(0);
)cuda";
constexpr std::string_view kUniformNumbers = R"cuda(
#pragma unroll
    for (int k = 0; k < 4; ++k) numbers[k] = $low + $range * Uniform(words[k]);
)cuda";
constexpr std::string_view kNormalNumbers = R"cuda(
#pragma unroll
    for (int k = 0; k < 4; k += 2) {
      Turn(Radius(words[k]), words[k + 1], numbers[k], numbers[k + 1]);
      numbers[k] = $mean + $scale * numbers[k];
      numbers[k + 1] = $mean + $scale * numbers[k + 1];
    }
)cuda";

// Whole blocks are packs.
constexpr std::string_view kStorePacks = R"cuda(
    Pack<$T, 4> pack;
$load#pragma unroll
    for (int k = 0; k < 4; ++k) Store(pack.at, k, $value);
    StorePack(y, group, pack);
)cuda";
constexpr std::string_view kStoreEach = R"cuda(
    for (int k = 0; k < 4 && block * 4 + k < $width; ++k) {
      const i64 e = (i64)sample * $width + block * 4 + k;
      Store(y, e, $value);
    }
)cuda";

// What a thread stores of numbers[k], the element of x being `x`.
std::string DropoutValue(const char* x) {
  return fmt::format("numbers[k] == R(0) ? R(0) : (R){} * numbers[k]", x);
}

std::string StoreText(bool packs, bool dropout, const char* dtype, int64_t width) {
  if (packs) {
    return FillText(kStorePacks,
                    {{"T", dtype},
                     {"load", dropout ? fmt::format("    const Pack<{}, 4> from = LoadPack<4>(x, "
                                                    "group);\n",
                                                    dtype)
                                      : ""},
                     {"value", dropout ? DropoutValue("Load(from.at, k)") : "numbers[k]"}});
  }
  return FillText(kStoreEach, {{"width", fmt::format("{}ll", width)},
                               {"value", dropout ? DropoutValue("Load(x, e)") : "numbers[k]"}});
}

std::string NumbersText(const OpDef& op, const OpCall& call) {
  if (op.name == "random_uniform") {
    const double low = call.number("low");
    return FillText(kUniformNumbers,
                    {{"low", Literal(low)}, {"range", Literal(call.number("high") - low)}});
  }
  if (op.name == "random_normal") {
    return FillText(kNormalNumbers, {{"mean", Literal(call.number("mean"))},
                                     {"scale", Literal(call.number("scale"))}});
  }
  // word / 2^24 >= rate, exactly.
  const double rate = call.number("rate");
  const auto least = static_cast<int64_t>(std::ceil(std::ldexp(rate, 24)));
  return FillText(kDropoutNumbers,
                  {{"least", fmt::format("{}u", least)}, {"scale", Literal(1 / (1 - rate))}});
}

const char* WriteDraws(const OpDef& op, const OpCall& call, KernelText& text) {
  const TensorType& y = call.outputs[0];
  const bool dropout = op.name == "dropout";
  const char* dtype = StorageType(y.dtype);
  if (dtype == nullptr) return refusal::kDType;
  const int64_t samples = y.rank() == 0 ? 1 : y.dims[0];
  const int64_t width = y.elements() / samples, blocks = CeilDiv(width, int64_t{4});
  text.source =
      FillText(kDrawFunctions,
               {{"R", ComputeType(y.dtype)},
                {"stream", fmt::format("{}u", static_cast<uint32_t>(call.integer("stream")))}}) +
      FillText(kDrawText, {{"T", dtype},
                           {"x_parameter", dropout ? fmt::format("const {}* x,", dtype) : ""},
                           {"Index", IndexType(4 * samples * blocks)},
                           {"groups", std::to_string(samples * blocks)},
                           {"blocks", std::to_string(blocks)},
                           {"numbers", NumbersText(op, call)},
                           {"store", StoreText(width % 4 == 0, dropout, dtype, width)}});
  std::vector<Argument> arguments = {Argument::Input(0)};
  if (dropout) arguments.push_back(Argument::Input(1));
  arguments.push_back(Argument::Output(0));
  text.launches = {{"draw", BlocksFor(samples * blocks), kBlockThreads, arguments}};
  return nullptr;
}

}  // namespace

TextKernelDef DrawsTextKernel() {
  return {.name = "cuda.draws",
          .ops = {"dropout", "random_uniform", "random_normal"},
          .write = WriteDraws};
}

}  // namespace ridge::cuda

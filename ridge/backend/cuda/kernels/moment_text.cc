#include "ridge/backend/cuda/kernels/moment_text.h"

#include <fmt/format.h>

#include <functional>

namespace ridge::cuda {
namespace {

// Values of all codes, and where the search for one finds a magnitude's decade and cell.
constexpr std::string_view kCodeText = R"cuda(
__device__ const R ${name}_values[256] = {$values};
__device__ const R ${name}_scale[7] = {$scale};
RIDGE_FUNCTION int ${name}_Rank(R x) {
  if (x >= $top) return $top_rank;
  const int above = $above;
  if (above == 0) return $skipped != 0 && x > 0 ? 1 : 0;
  const int cells = 1 << (above - 1 + $skipped);
  const int rank = (int)floor(${name}_scale[above - 1] * x + (R)cells * R(0.88888888888888889));
  return (rank < 2 * cells - 1 ? rank : 2 * cells - 1) - $skipped;
}
RIDGE_FUNCTION u8 ${name}_Code(R x) {
  const int rank = ${name}_Rank(fabs(x));
  return (u8)($code);
}
)cuda";

constexpr const char* kSignedCode =
    "x < 0 ? 127 - (rank < $top_rank ? rank : $top_rank - 1) : 127 + rank";

constexpr std::string_view kRoundingText = R"cuda(
struct ElementKey { u32 start, mask; };
RIDGE_FUNCTION ElementKey ElementKeyOf(const i64* rng) {
  const u64 seed = (u64)rng[0];
  u32 words[4] = {0, 0, 0, (u32)rng[1]};
  Philox((u32)seed ^ (u32)(seed >> 32), $stream, words);
  ElementKey key = {words[0], words[1]};
  return key;
}
RIDGE_FUNCTION u32 ElementWord(ElementKey key, u32 element) {
  u32 x = element + key.start;
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu ^ key.mask;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}
// The lower half of the bits is the chance of the larger magnitude.
RIDGE_FUNCTION BF16 RoundAtRandom(float value, u32 random) {
  BF16 rounded;
  rounded.bits = IsNan(value) ? ToBF16(value) : (u16)((__float_as_uint(value) + random) >> 16);
  return rounded;
}
)cuda";

std::string Literals(size_t count, const std::function<double(size_t)>& number) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + Literal(number(i));
  return text;
}

// How many decades begin at or below x.
std::string CountText(const Decades& decades) {
  std::string text;
  for (const double first : decades.first)
    text += fmt::format("{}(x >= {})", text.empty() ? "" : " + ", Literal(first));
  return text;
}

}  // namespace

MomentText::MomentText(const OpCall& call, const MomentSlots& slots, std::string name)
    : form_(FormOfMoment(call, slots.input)),
      slots_(slots),
      name_(std::move(name)),
      stored_(StorageType(call.inputs[slots.input].dtype)),
      absmax_(StorageType(call.inputs[0].dtype)) {}

std::string MomentText::Fill(std::string_view text) const {
  return FillText(text, {{"name", name_}, {"T", stored_}, {"A", absmax_}});
}

std::string MomentText::Parameters() const {
  return Fill(coded() ? ", const $T* ${name}_in, $T* ${name}_out, const $A* ${name}_absmax_in, "
                        "$A* ${name}_absmax_out"
                      : ", const $T* ${name}_in, $T* ${name}_out");
}

void MomentText::AddArguments(std::vector<Argument>& arguments) const {
  arguments.push_back(Argument::Input(static_cast<int>(slots_.input)));
  arguments.push_back(Argument::Output(static_cast<int>(slots_.output)));
  if (!coded()) return;
  arguments.push_back(Argument::Input(static_cast<int>(slots_.absmax_input)));
  arguments.push_back(Argument::Output(static_cast<int>(slots_.absmax_output)));
}

std::string MomentText::Functions() const {
  if (!coded()) return "";
  const Decades& decades = DecadesOf(slots_.signs);
  const std::string top_rank = std::to_string(decades.top_rank);
  const bool with_signs = slots_.signs == CodeSigns::kSigned;
  return FillText(
      kCodeText,
      {{"name", name_},
       {"values",
        Literals(256, [&](size_t i) { return DynamicValue(slots_.signs, static_cast<int>(i)); })},
       {"scale", Literals(kDecades, [&](size_t d) { return decades.scale[d]; })},
       {"top", Literal(decades.top)},
       {"top_rank", top_rank},
       {"above", CountText(decades)},
       {"skipped", std::to_string(decades.skipped)},
       {"code", with_signs ? FillText(kSignedCode, {{"top_rank", top_rank}}) : "rank"}});
}

std::string MomentText::LoadPackText(int pack) const {
  return fmt::format(
      "    const Pack<{0}, {2}> {1}_p = LoadPack<{2}>({1}_in, group);\n"
      "    Pack<{0}, {2}> {1}_q;\n",
      stored_, name_, pack);
}

std::string MomentText::ElementText() const {
  return Fill("      R $name = (R)Load(${name}_p.at, k);\n");
}

std::string MomentText::StoreElementText() const {
  if (!rounded()) return Fill("      Store(${name}_q.at, k, $name);\n");
  const char* half = slots_.upper_bits ? "word >> 16" : "word & 0xFFFFu";
  return FillText("      ${name}_q.at[k] = RoundAtRandom((float)$name, $half);\n",
                  {{"name", name_}, {"half", half}});
}

std::string MomentText::StorePackText() const {
  return Fill("    StorePack(${name}_out, group, ${name}_q);\n");
}

std::string MomentText::KeepText(int64_t elements) const {
  std::string text = Fill("    Keep(${name}_in, ${name}_out, ") + fmt::format("{});\n", elements);
  if (!coded()) return text;
  return text + Fill("    Keep(${name}_absmax_in, ${name}_absmax_out, ") +
         fmt::format("{});\n", CodeBlocks(elements));
}

std::string MomentText::LoadCodeText() const {
  return Fill(
      "    R $name = counts ? ${name}_values[${name}_in[e]] * (R)Load(${name}_absmax_in, block) : "
      "R(0);\n");
}

std::string MomentText::StoreCodeText() const {
  return Fill(
      "    const R ${name}_most = BlockMax(counts ? fabs($name) : R(0), scratch);\n"
      "    if (counts) ${name}_out[e] = ${name}_Code(${name}_most > 0 ? $name / ${name}_most : "
      "R(0));\n"
      "    if (threadIdx.x == 0) Store(${name}_absmax_out, block, ${name}_most);\n");
}

std::string RoundingText(int64_t stream) {
  return FillText(kRoundingText, {{"stream", fmt::format("{}u", static_cast<uint32_t>(stream))}});
}

}  // namespace ridge::cuda

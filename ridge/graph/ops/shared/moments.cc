#include "ridge/graph/ops/shared/moments.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/element_words.h"

namespace ridge {
namespace {

Status CheckRounded(const OpCall& call, const MomentSlots& slots) {
  if (call.has_input(slots.rng)) return Status();
  return CallError(call, fmt::format("{} is bf16 but rng is not given; hint: give it i64[2], seed "
                                     "and step",
                                     slots.name));
}

Status CheckCoded(const OpCall& call, const MomentSlots& slots) {
  const std::string name = fmt::format("{}_absmax", slots.name);
  if (call.has_input(slots.absmax_input)) {
    return CheckType(call, slots.absmax_input, name.c_str(), AbsmaxType(call.inputs[0]),
                     "one for each 256 elements of param");
  }
  return CallError(call, fmt::format("{} is u8 but {} is not given; hint: give it a state that "
                                     "starts with zeros",
                                     slots.name, name));
}

void RoundAll(const OpCall& call, bool upper_bits, const double* rng, int64_t count,
              double* values) {
  const ElementKey key =
      ElementKeyOf({.seed = static_cast<uint64_t>(rng[0]),
                    .stream = static_cast<uint32_t>(call.integer("stream")),
                    .step = static_cast<uint32_t>(static_cast<int64_t>(rng[1]))});
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t word = ElementWord(key, static_cast<uint32_t>(i));
    values[i] = double{
        RoundAtRandom(static_cast<float>(values[i]), upper_bits ? word >> 16 : word & 0xFFFF)};
  }
}

void EncodeAll(CodeSigns signs, int64_t count, double* values, double* absmax) {
  for (int64_t first = 0; first < count; first += kCodeBlock) {
    const int64_t end = std::min(first + kCodeBlock, count);
    double largest = 0;
    for (int64_t i = first; i < end; ++i) largest = std::max(largest, std::fabs(values[i]));
    absmax[first / kCodeBlock] = largest;
    for (int64_t i = first; i < end; ++i)
      values[i] = DynamicCode(signs, largest > 0 ? values[i] / largest : 0);
  }
}

}  // namespace

MomentForm FormOfMoment(const OpCall& call, size_t input) {
  const DType dtype = call.inputs[input].dtype;
  if (dtype == call.inputs[0].dtype) return MomentForm::kWhole;
  return dtype == DType::kU8 ? MomentForm::kCoded : MomentForm::kRounded;
}

Status CheckMoment(const OpCall& call, const MomentSlots& slots) {
  const TensorType &param = call.inputs[0], &moment = call.inputs[slots.input];
  if (moment.dims == param.dims && moment.dtype == DType::kU8) return CheckCoded(call, slots);
  if (moment.dims == param.dims && moment.dtype == DType::kBF16 && param.dtype != DType::kBF16)
    return CheckRounded(call, slots);
  return CheckType(call, slots.input, slots.name, param, "the type of param");
}

Status CheckRounding(const OpCall& call, size_t rng) {
  if (!call.has_input(rng)) return Status();
  return CheckType(call, rng, "rng", {DType::kI64, {2}}, "seed and step");
}

TensorType AbsmaxType(const TensorType& param) {
  return {param.dtype, {CodeBlocks(param.elements())}};
}

double LoadMoment(const OpCall& call, const MomentSlots& slots, std::span<const double* const> in,
                  int64_t i) {
  const double kept = in[slots.input][i];
  if (FormOfMoment(call, slots.input) != MomentForm::kCoded) return kept;
  return DynamicValue(slots.signs, static_cast<int>(kept)) * in[slots.absmax_input][i / kCodeBlock];
}

void StoreMoment(const OpCall& call, const MomentSlots& slots, std::span<const double* const> in,
                 std::span<double* const> out) {
  const int64_t count = call.inputs[0].elements();
  switch (FormOfMoment(call, slots.input)) {
    case MomentForm::kWhole:
      return;
    case MomentForm::kRounded:
      return RoundAll(call, slots.upper_bits, in[slots.rng], count, out[slots.output]);
    case MomentForm::kCoded:
      return EncodeAll(slots.signs, count, out[slots.output], out[slots.absmax_output]);
  }
}

float RoundAtRandom(float value, uint32_t random) {
  if (std::isnan(value)) return value;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(value) + random) & 0xFFFF0000);
}

}  // namespace ridge

// Moments of an optimizer: the forms in which its updates keep them.
//
//   kWhole    the parameter's type
//   kRounded  bf16, rounded at random: a step that is smaller than half a unit in the last place is
//             taken as often as it should be, so the average is right.  Rounded to the nearest, it
//             would always be lost: Adam's second moment moves by a thousandth of itself.
//   kCoded    u8, dynamic codes (dynamic_code.h) in blocks of the row-major order, and one absmax a
//             block
//
// Computing is in the parameter's type; the form is what lies in memory between two updates.
#pragma once
#include "ridge/graph/op_def.h"
#include "ridge/graph/ops/shared/dynamic_code.h"

namespace ridge {

enum class MomentForm : uint8_t { kWhole, kRounded, kCoded };

// Of the moment that is this input.  REQUIRES: the call passed its type check.
MomentForm FormOfMoment(const OpCall& call, size_t input);

// One moment of an operator: its inputs and outputs.
struct MomentSlots {
  const char* name;
  size_t input, output;
  size_t rng;                          // input: i64[2] = seed, step
  size_t absmax_input, absmax_output;  // of kCoded
  CodeSigns signs = CodeSigns::kSigned;
  bool upper_bits = false;  // which half of an element's random word rounds it
};

inline constexpr MomentSlots kAdamM = {
    .name = "m", .input = 2, .output = 1, .rng = 6, .absmax_input = 7, .absmax_output = 3};
inline constexpr MomentSlots kAdamV = {.name = "v",
                                       .input = 3,
                                       .output = 2,
                                       .rng = 6,
                                       .absmax_input = 8,
                                       .absmax_output = 4,
                                       .signs = CodeSigns::kUnsigned,
                                       .upper_bits = true};
inline constexpr MomentSlots kSgdBuffer = {.name = "momentum_buffer",
                                           .input = 3,
                                           .output = 1,
                                           .rng = 4,
                                           .absmax_input = 5,
                                           .absmax_output = 2};

// Input 0 is the parameter.  The moment has its type, or is bf16 with rng, or u8 with absmax.
Status CheckMoment(const OpCall& call, const MomentSlots& slots);

// `rng`, where it is given, is i64[2] = seed, step.
Status CheckRounding(const OpCall& call, size_t rng);

// One for each block of a coded moment.
TensorType AbsmaxType(const TensorType& param);

// Element i as it is kept.
double LoadMoment(const OpCall& call, const MomentSlots& slots, std::span<const double* const> in,
                  int64_t i);
// Brings the numbers in the moment's output into its form.
void StoreMoment(const OpCall& call, const MomentSlots& slots, std::span<const double* const> in,
                 std::span<double* const> out);

// bf16 from f32: the lower half of the bits is the chance of the larger magnitude.  `random` has 16
// bits.  Exact numbers, infinities and NaN stay.
float RoundAtRandom(float value, uint32_t random);

}  // namespace ridge

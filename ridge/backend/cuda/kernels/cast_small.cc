// cast to and from floats of 8 and 4 bits and integers of 4 and 2 bits, a byte each: they are read
// by a table of 256 numbers, and written by the rules of core/small_float.h.
#include <fmt/format.h>

#include <bit>
#include <limits>

#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/small_float.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kCastText = R"cuda(
typedef $R R;
$from_table
$encode
RIDGE_KERNEL void cast(const $X* x, $Y* y) {
  for (i64 group = Thread(); group < $groups; group += Threads()) {
    const Pack<$X, $lanes> from = LoadPack<$lanes>(x, group);
    Pack<$Y, $lanes> to;
#pragma unroll
    for (int k = 0; k < $lanes; ++k) {
      const R value = $load;
      $store;
    }
    StorePack(y, group, to);
  }
}
)cuda";

// Floats with a mantissa: a multiple of the last place, to nearest even.  Its exponent may be that
// of float(value), one too large just below a power of two: the multiple is the same.
constexpr std::string_view kEncodeFloat = R"cuda(
RIDGE_FUNCTION u8 Encoded(R value) {
  const bool negative = copysign(R(1), value) < 0;
  if (IsNan(value)) return negative ? $negative_nan : $nan;
  const R magnitude = fabs(value);
  if (magnitude > R(2) * $largest) return negative ? $negative_beyond : $beyond;
  int exponent = (int)(__float_as_uint((float)magnitude) >> 23) - 127;
  if (exponent < 1 - $bias) exponent = 1 - $bias;
  const R places = rint(ldexp(magnitude, $mantissa - exponent));
  if (ldexp(places, exponent - $mantissa) > $largest) return negative ? $negative_beyond : $beyond;
  const int bits = ((exponent + $bias - 1) << $mantissa) + (int)places;
  return (u8)(bits | (negative && (bits != 0 || $negative_zero) ? $sign : 0));
}
)cuda";

constexpr std::string_view kEncodeE8M0 = R"cuda(
RIDGE_FUNCTION u8 Encoded(double value) {
  if (!(value >= 0)) return 0xff;
  if (value < ldexp(1.0, -127)) return $too_small;
  if (value > ldexp(1.0, 128)) return $beyond;
  const bool below = value < 1;  // scaled into the range of normal floats
  const double scaled = below ? ldexp(value, 64) : ldexp(value, -64);
  int exponent = (int)(__float_as_uint((float)scaled) >> 23) - 127;
  if (ldexp(1.0, exponent) > scaled) --exponent;
  const double fraction = ldexp(scaled, -exponent);
  exponent += (below ? -64 : 64) + ($rounds_up ? 1 : 0);
  return exponent > 127 ? $beyond : (u8)(exponent + 127);
}
)cuda";

constexpr std::string_view kEncodeInteger = R"cuda(
RIDGE_FUNCTION u8 Encoded(double value) {
#if $saturates
  const double held = Whole(value, $low, $high);
#else
  if (!(fabs(value) < Infinity<double>())) value = 0;
  double held = fmod(trunc(value), $modulus);
  if (held < $low) held += $modulus;
  if (held > $high) held -= $modulus;
#endif
  return (u8)(int)held;
}
)cuda";

bool IsSmall(DType dtype) { return StorageType(dtype) == nullptr; }

bool IsWide(DType dtype) {
  return !IsSmall(dtype) && std::string_view(ComputeType(dtype)) == "double";
}

int Code(DType to, double value, bool saturate) {
  uint8_t bits = 0;
  StoreFromDouble(to, &bits, 0, CastValue(to, value, saturate));
  return bits;
}

// The numbers of all bytes, as bits of floats.
std::string TableText(DType from) {
  std::vector<std::string> values;
  for (int bits = 0; bits < 256; ++bits) {
    const auto byte = static_cast<uint8_t>(bits);
    values.push_back(fmt::format(
        "{:#x}", std::bit_cast<uint32_t>(static_cast<float>(LoadAsDouble(from, &byte, 0)))));
  }
  return fmt::format("__device__ const u32 kNumbers[] = {{{}}};\n", fmt::join(values, ","));
}

struct MantissaFormat {
  DType dtype;
  int mantissa, bias, sign;
  bool negative_zero;
};
constexpr MantissaFormat kFormats[] = {{DType::kF8E4M3FN, 3, 7, 0x80, true},
                                       {DType::kF8E4M3FNUZ, 3, 8, 0x80, false},
                                       {DType::kF8E5M2, 2, 15, 0x80, true},
                                       {DType::kF8E5M2FNUZ, 2, 16, 0x80, false},
                                       {DType::kF4E2M1, 1, 1, 0x08, true}};

std::string EncodeFloatText(const MantissaFormat& format, bool saturate) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kBeyond = 1e30;
  const auto code = [&](double value) {
    return std::to_string(Code(format.dtype, value, saturate));
  };
  return FillText(kEncodeFloat, {{"nan", code(kNan)},
                                 {"negative_nan", code(-kNan)},
                                 {"beyond", code(kBeyond)},
                                 {"negative_beyond", code(-kBeyond)},
                                 {"largest", Literal(LargestSmallFloat(format.dtype))},
                                 {"bias", std::to_string(format.bias)},
                                 {"mantissa", std::to_string(format.mantissa)},
                                 {"negative_zero", format.negative_zero ? "true" : "false"},
                                 {"sign", std::to_string(format.sign)}});
}

std::string EncodeIntegerText(DType to, bool saturate) {
  const int values = 1 << IntegerBits(to), low = IsSigned(to) ? -values / 2 : 0;
  return FillText(kEncodeInteger, {{"saturates", saturate ? "1" : "0"},
                                   {"low", std::to_string(low)},
                                   {"high", std::to_string(low + values - 1)},
                                   {"modulus", fmt::format("{}.0", values)}});
}

std::string EncodeText(const OpCall& call) {
  const DType to = call.outputs[0].dtype;
  const bool saturate = call.integer("saturate") != 0;
  if (IsInteger(to)) return EncodeIntegerText(to, saturate);
  for (const MantissaFormat& format : kFormats) {
    if (format.dtype == to) return EncodeFloatText(format, saturate);
  }
  const std::string& round = call.text("round");
  return FillText(kEncodeE8M0, {{"too_small", saturate ? "0" : "0xff"},
                                {"beyond", saturate ? "0xfe" : "0xff"},
                                {"rounds_up", round == "up"     ? "fraction > 1"
                                              : round == "down" ? "false"
                                                                : "fraction >= 1.5"}});
}

const char* WriteCast(const OpDef&, const OpCall& call, KernelText& text) {
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  const bool reads = IsSmall(x.dtype), writes = IsSmall(y.dtype);
  if (!reads && !writes) return refusal::kDType;
  if (!writes && IsInteger(y.dtype) && call.integer("saturate") == 0) return refusal::kAttribute;
  const bool wide = IsWide(x.dtype) || IsWide(y.dtype) ||
                    (writes && (IsInteger(y.dtype) || y.dtype == DType::kF8E8M0));
  const int lanes = y.elements() % 4 == 0 ? 4 : 1;
  const int64_t groups = y.elements() / lanes;
  text.source = FillText(
      kCastText,
      {{"R", wide ? "double" : "float"},
       {"from_table", reads ? TableText(x.dtype) : ""},
       {"encode", writes ? EncodeText(call) : ""},
       {"X", reads ? "u8" : StorageType(x.dtype)},
       {"Y", writes ? "u8" : StorageType(y.dtype)},
       {"groups", fmt::format("{}ll", groups)},
       {"lanes", std::to_string(lanes)},
       {"load", reads ? "(R)__uint_as_float(kNumbers[from.at[k]])" : "(R)Load(from.at, k)"},
       {"store", writes ? "to.at[k] = Encoded(value)" : "Store(to.at, k, value)"}});
  text.launches = {
      {"cast", BlocksFor(groups), kBlockThreads, {Argument::Input(0), Argument::Output(0)}}};
  return nullptr;
}

}  // namespace

TextKernelDef CastSmallTextKernel() {
  return {.name = "cuda.cast_small", .ops = {"cast"}, .write = WriteCast};
}

}  // namespace ridge::cuda

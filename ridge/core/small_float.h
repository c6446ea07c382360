// Floats of 8 and 4 bits: stored, never computed in.
//
//   f8e4m3fn    sign, 4 exponent, 3 mantissa bits; NaN, no infinity; largest 448
//   f8e4m3fnuz  the same, one NaN, no -0; largest 240
//   f8e5m2      as f16 cut off; infinity and NaN; largest 57344
//   f8e5m2fnuz  one NaN, no infinity, no -0; largest 57344
//   f8e8m0      2^(bits - 127), from 2^-127 to 2^127; NaN; no sign, no zero
//   f4e2m1      0 0.5 1 1.5 2 3 4 6 and their negatives; in the low half of a byte
//
// Sources: OCP 8-bit floating point specification 1.0, OCP microscaling formats 1.0, and for fnuz
// Noune et al., "8-bit numerical formats for deep neural networks", 2022.
#pragma once
#include <cstdint>

#include "ridge/core/dtype.h"

namespace ridge {

// f8* and f4e2m1; the functions below REQUIRE it.
bool IsSmallFloat(DType t);

double SmallFloatToDouble(DType t, uint8_t bits);

// To nearest, ties to even.  What is too large becomes the largest number; infinity stays where the
// format has one and NaN does.  f8e8m0: ties up; 0 and what is too small become 2^-127, negative
// numbers NaN.  f4e2m1 has no NaN: it becomes -0.
uint8_t DoubleToSmallFloat(DType t, double value);

double LargestSmallFloat(DType t);
bool HasInfinity(DType t);

// `value` to the precision of t, not bounded by its range: [x] in the ONNX specification of Cast.
double RoundToSmallFloat(DType t, double value);

}  // namespace ridge

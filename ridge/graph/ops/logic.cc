// Comparison, logic of bools, and bits of integers.  None is differentiable.
#include <cmath>

#include "ridge/graph/ops/shared/bits.h"
#include "ridge/graph/ops/shared/pointwise_row.h"

namespace ridge {
namespace {

using enum Operands;

template <class F>
constexpr PointwiseRow Compare(const char* name, const char* doc, OnnxOp onnx, Operands operands,
                               F function) {
  PointwiseRow row = Binary(name, doc, onnx, operands, 1, function, nullptr);
  row.types = operands == kAny ? InferPredicate<kAny> : InferPredicate<kNumber>;
  row.in_place = false;
  return row;
}

// As two's complement.
template <class F>
constexpr PointwiseRow Bits(const char* name, const char* doc, OnnxOp onnx, F function) {
  PointwiseRow row = Binary(name, doc, onnx, kNumber, 1, function, nullptr);
  row.types = InferBits;
  return row;
}

// floor(a / 2^n).  No integer has more than 64 bits; a negative n counts as 0.
double ShiftRight(double a, double n) {
  const int places = n >= 64 ? 64 : n > 0 ? static_cast<int>(n) : 0;
  return std::floor(std::ldexp(a, -places));
}

constexpr PointwiseRow kRows[] = {
    Compare("equal", "y = a == b, as bool; false when either is NaN. Inputs broadcast.",
            {"Equal", 11, 13, 11, 11}, kAny, [](double a, double b) { return a == b; }),
    Compare("not_equal", "y = a != b, as bool; true when either is NaN. Inputs broadcast.", {},
            kAny, [](double a, double b) { return a != b; }),
    Compare("less", "y = a < b, as bool; false when either is NaN. Inputs broadcast.",
            {"Less", 9, 13, 9, 9}, kNumber, [](double a, double b) { return a < b; }),
    Compare("less_equal", "y = a <= b, as bool; false when either is NaN. Inputs broadcast.",
            {"LessOrEqual", 12, 16, 12, 12}, kNumber, [](double a, double b) { return a <= b; }),
    Compare("greater", "y = a > b, as bool; false when either is NaN. Inputs broadcast.",
            {"Greater", 9, 13, 9, 9}, kNumber, [](double a, double b) { return a > b; }),
    Compare("greater_equal", "y = a >= b, as bool; false when either is NaN. Inputs broadcast.",
            {"GreaterOrEqual", 12, 16, 12, 12}, kNumber, [](double a, double b) { return a >= b; }),
    Unary(
        "logical_not", "y = not x.", {"Not", 1, 1, 0, 1}, kBool, 1, [](double x) { return x == 0; },
        nullptr),
    Binary(
        "logical_and", "y = a and b, of bools. Inputs broadcast.", {"And", 7, 7, 0, 7}, kBool, 1,
        [](double a, double b) { return a != 0 && b != 0; }, nullptr),
    Binary(
        "logical_or", "y = a or b, of bools. Inputs broadcast.", {"Or", 7, 7, 0, 7}, kBool, 1,
        [](double a, double b) { return a != 0 || b != 0; }, nullptr),
    Bits("bitwise_and", "y = a and b, bit by bit, of integers. Inputs broadcast.",
         {"BitwiseAnd", 18, 0, 18, 18},
         [](double a, double b) { return NumberOfBits(BitsOf(a) & BitsOf(b), a < 0 && b < 0); }),
    Bits("bitwise_or", "y = a or b, bit by bit, of integers. Inputs broadcast.",
         {"BitwiseOr", 18, 0, 18, 18},
         [](double a, double b) { return NumberOfBits(BitsOf(a) | BitsOf(b), a < 0 || b < 0); }),
    Bits(
        "bitwise_xor", "y = a exclusive or b, bit by bit, of integers. Inputs broadcast.",
        {"BitwiseXor", 18, 0, 18, 18},
        [](double a, double b) { return NumberOfBits(BitsOf(a) ^ BitsOf(b), (a < 0) != (b < 0)); }),
    Bits("shift_right", "y = floor(a / 2^n), of integers. Inputs broadcast.",
         {"BitShift", 11, 0, 0, 11}, [](double a, double n) { return ShiftRight(a, n); })
        .Named("a", "n", "y"),
};

}  // namespace

std::vector<OpDef> LogicOps() { return OpsOf(kRows); }

}  // namespace ridge

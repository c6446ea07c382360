#include "ridge/backend/cpu/kernels/tile_program.h"

#include "ridge/core/small_float.h"

namespace ridge::cpu {
namespace {

struct Named {
  const char* name;
  TileOp op;
};
constexpr Named kOps[] = {
    {"neg", TileOp::kNeg},
    {"abs", TileOp::kAbs},
    {"exp", TileOp::kExp},
    {"log", TileOp::kLog},
    {"sqrt", TileOp::kSqrt},
    {"rsqrt", TileOp::kRsqrt},
    {"reciprocal", TileOp::kReciprocal},
    {"square", TileOp::kSquare},
    {"sign", TileOp::kSign},
    {"floor", TileOp::kFloor},
    {"ceil", TileOp::kCeil},
    {"round", TileOp::kRound},
    {"erf", TileOp::kErf},
    {"sin", TileOp::kSin},
    {"cos", TileOp::kCos},
    {"atan", TileOp::kAtan},
    {"trunc", TileOp::kTrunc},
    {"relu", TileOp::kRelu},
    {"relu_grad", TileOp::kReluGrad},
    {"leaky_relu", TileOp::kLeakyRelu},
    {"silu", TileOp::kSilu},
    {"silu_grad", TileOp::kSiluGrad},
    {"tanh", TileOp::kTanh},
    {"sigmoid", TileOp::kSigmoid},
    {"softplus", TileOp::kSoftplus},
    {"elu", TileOp::kElu},
    {"hard_sigmoid", TileOp::kHardSigmoid},
    {"hard_swish", TileOp::kHardSwish},
    {"mish", TileOp::kMish},
    {"logical_not", TileOp::kLogicalNot},
    {"add", TileOp::kAdd},
    {"sub", TileOp::kSub},
    {"mul", TileOp::kMul},
    {"div", TileOp::kDiv},
    {"pow", TileOp::kPow},
    {"maximum", TileOp::kMaximum},
    {"minimum", TileOp::kMinimum},
    {"equal", TileOp::kEqual},
    {"not_equal", TileOp::kNotEqual},
    {"less", TileOp::kLess},
    {"less_equal", TileOp::kLessEqual},
    {"greater", TileOp::kGreater},
    {"greater_equal", TileOp::kGreaterEqual},
    {"logical_and", TileOp::kLogicalAnd},
    {"logical_or", TileOp::kLogicalOr},
    {"where", TileOp::kWhere},
};

float Number(const AttrMap& attrs, const char* name) {
  return static_cast<float>(std::get<double>(attrs.at(name)));
}

bool UsesTanh(const AttrMap& attrs) {
  return std::get<std::string>(attrs.at("approximate")) == "tanh";
}

}  // namespace

std::optional<TileStep> TileStepOf(const std::string& op, const AttrMap& attrs, DType to) {
  TileStep step{TileOp::kCopy};
  if (op == "cast") {
    const bool keeps_low_bits = IsInteger(to) && std::get<int64_t>(attrs.at("saturate")) == 0;
    if (IsSmallFloat(to) || keeps_low_bits) return std::nullopt;
    if (to == DType::kBool) step.op = TileOp::kToBool;
    return step;
  }
  if (op == "gelu") {
    step.op = UsesTanh(attrs) ? TileOp::kGeluTanh : TileOp::kGelu;
    return step;
  }
  if (op == "gelu_grad") {
    step.op = UsesTanh(attrs) ? TileOp::kGeluTanhGrad : TileOp::kGeluGrad;
    return step;
  }
  if (op == "clip") {
    return TileStep{TileOp::kClip, 0, 0, 0, 0, Number(attrs, "min"), Number(attrs, "max")};
  }
  for (const Named& named : kOps) {
    if (op != named.name) continue;
    step.op = named.op;
    if (attrs.contains("alpha")) step.p = Number(attrs, "alpha");
    if (attrs.contains("beta")) step.q = Number(attrs, "beta");
    return step;
  }
  return std::nullopt;
}

}  // namespace ridge::cpu

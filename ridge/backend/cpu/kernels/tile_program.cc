#include "ridge/backend/cpu/kernels/tile_program.h"

#include "ridge/core/small_float.h"

namespace ridge::cpu {
namespace {

struct Named {
  const char* name;
  TileOp op;
};
constexpr Named kOps[] = {
#define RIDGE_TILE_STEP(Name, op, ...) {op, TileOp::k##Name},
#include "ridge/backend/cpu/kernels/tile_steps.def"
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

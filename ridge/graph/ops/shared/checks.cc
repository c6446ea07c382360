#include "ridge/graph/ops/shared/checks.h"

#include <fmt/format.h>

#include <cmath>

#include "ridge/graph/keep_f32.h"

namespace ridge {

Status CheckFloat(const OpCall& call, size_t i, const char* name) {
  if (IsFloat(call.inputs[i].dtype)) return Status();
  return CallError(call, fmt::format("{} is {}; it must be f64, f32, f16 or bf16; hint: cast it",
                                     name, TypeToString(call.inputs[i])));
}

Result<DType> FloatOutDType(const OpCall& call) {
  const std::string& text = call.text("out_dtype");
  if (text.empty()) return call.inputs[0].dtype;
  const std::optional<DType> out = ParseDType(text);
  if (out && IsFloat(*out)) return *out;
  return CallError(call,
                   fmt::format("out_dtype is \"{}\"; it must be f64, f32, f16 or bf16", text));
}

Result<DType> ProductDType(const OpCall& call) {
  RIDGE_RETURN_IF_ERROR(CheckFlag(call, kKeepF32));
  if (call.attrs.contains(kNarrowResult)) RIDGE_RETURN_IF_ERROR(CheckFlag(call, kNarrowResult));
  const std::string& text = call.text("out_dtype");
  const DType in = call.inputs[0].dtype;
  if (text.empty()) return in;
  const std::optional<DType> out = ParseDType(text);
  if (out && IsFloat(*out) && IsFloat(in) && BytesPerElement(*out) >= BytesPerElement(in))
    return *out;
  return CallError(call, fmt::format("out_dtype is \"{}\" for products of {}; it must be a float "
                                     "type at least as wide, or be left out",
                                     text, DTypeName(in)));
}

DType BiasDType(const OpCall& call, size_t i, DType out) {
  const bool wide = call.has_input(i) && call.inputs[i].dtype == DType::kF32;
  return wide && BytesPerElement(out) < 4 ? DType::kF32 : out;
}

Status CheckIndex(const OpCall& call, size_t i, const char* name) {
  const DType dtype = call.inputs[i].dtype;
  if (dtype == DType::kI64 || dtype == DType::kI32) return Status();
  return CallError(call, fmt::format("{} is {}; it must be i64 or i32; hint: cast it", name,
                                     TypeToString(call.inputs[i])));
}

Status CheckType(const OpCall& call, size_t i, const char* name, const TensorType& type,
                 const char* why) {
  if (call.inputs[i] == type) return Status();
  return CallError(call, fmt::format("{} is {}; it must be {}, {}", name,
                                     TypeToString(call.inputs[i]), TypeToString(type), why));
}

Status CheckIntegers(const OpCall& call, const char* name, size_t count, int64_t min, int64_t max) {
  const std::vector<int64_t>& list = call.integers(name);
  bool good = list.size() == count;
  for (int64_t v : list) good = good && v >= min && v <= max;
  if (good) return Status();
  return CallError(call, fmt::format("{} is {}; it must be {} integers from {} to {}", name,
                                     DimsToString(list), count, min, max));
}

Status CheckShape(const OpCall& call, const char* name) {
  const Status status = CheckDims(call.integers(name));
  return status.ok() ? status : CallError(call, fmt::format("{}: {}", name, status.message()));
}

Status CheckFlag(const OpCall& call, const char* name) {
  const int64_t value = call.integer(name);
  if (value == 0 || value == 1) return Status();
  return CallError(call, fmt::format("{} is {}; it must be 0 or 1", name, value));
}

Status CheckNumber(const OpCall& call, const char* name, double end) {
  const double value = call.number(name);
  if (value >= 0 && value < end) return Status();
  const std::string bound = std::isinf(end) ? "finite" : fmt::format("below {}", end);
  return CallError(call, fmt::format("{} is {}; it must be at least 0 and {}", name, value, bound));
}

Result<int> CheckAxis(const OpCall& call, const char* name) {
  const int rank = call.inputs[0].rank();
  if (rank > 0) return NormalizeAxis(call.integer("axis"), rank, call.where);
  return CallError(call, fmt::format("{} is {}; it must have at least 1 dimension", name,
                                     TypeToString(call.inputs[0])));
}

int CallAxis(const OpCall& call) {
  return *NormalizeAxis(call.integer("axis"), call.inputs[0].rank(), call.where);
}

AttrMap PickAttrs(const AttrMap& attrs, std::initializer_list<const char*> names) {
  AttrMap picked;
  for (const char* name : names) picked[name] = attrs.at(name);
  return picked;
}

}  // namespace ridge

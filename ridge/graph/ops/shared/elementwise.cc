#include "ridge/graph/ops/shared/elementwise.h"

#include <fmt/format.h>

namespace ridge {
namespace {

bool Allowed(DType dtype, Operands operands) {
  switch (operands) {
    case Operands::kFloat:
      return IsFloat(dtype);
    case Operands::kSigned:
      return IsFloat(dtype) || IsSigned(dtype);
    case Operands::kNumber:
      return IsFloat(dtype) || IsInteger(dtype);
    case Operands::kBool:
      return dtype == DType::kBool;
    case Operands::kAny:
      return true;
  }
  return false;
}

const char* Wanted(Operands operands) {
  switch (operands) {
    case Operands::kFloat:
      return "f64, f32, f16 or bf16";
    case Operands::kSigned:
      return "a float or a signed integer";
    case Operands::kNumber:
      return "a float or an integer";
    case Operands::kBool:
      return "bool";
    case Operands::kAny:
      return "any dtype";
  }
  return "";
}

}  // namespace

Status CheckOperand(const OpCall& call, const std::string& name, const TensorType& type,
                    Operands operands) {
  if (Allowed(type.dtype, operands)) return Status();
  return CallError(call, fmt::format("{} is {}; its dtype must be {}. hint: use cast", name,
                                     TypeToString(type), Wanted(operands)));
}

Result<Dims> BroadcastInputs(const OpCall& call, size_t first) {
  Dims dims = call.inputs[first].dims;
  for (size_t i = first + 1; i < call.inputs.size(); ++i) {
    Result<Dims> both = BroadcastDims(dims, call.inputs[i].dims);
    if (!both.ok()) return CallError(call, both.status().message());
    dims = *std::move(both);
  }
  return dims;
}

Result<std::vector<TensorType>> PointwiseTypes(const OpCall& call, Operands operands,
                                               bool to_bool) {
  const TensorType& first = call.inputs[0];
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorType& type = call.inputs[i];
    const std::string name = call.inputs.size() == 1 ? "the input" : fmt::format("input {}", i);
    RIDGE_RETURN_IF_ERROR(CheckOperand(call, name, type, operands));
    if (type.dtype != first.dtype) {
      return CallError(call, fmt::format("inputs are {} and {}; they must have one dtype. hint: "
                                         "use cast",
                                         TypeToString(first), TypeToString(type)));
    }
  }
  RIDGE_ASSIGN_OR_RETURN(Dims dims, BroadcastInputs(call));
  return std::vector<TensorType>{{to_bool ? DType::kBool : first.dtype, std::move(dims)}};
}

Cost CostPerElement(const OpCall& call, int64_t flops) {
  Cost cost;
  for (const TensorType& type : call.inputs) cost.bytes_read += type.bytes();
  for (const TensorType& type : call.outputs) {
    cost.bytes_written += type.bytes();
    cost.flops += flops * type.elements();
  }
  return cost;
}

}  // namespace ridge

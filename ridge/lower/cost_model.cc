#include "ridge/lower/cost_model.h"

namespace ridge {
namespace {

DType PricedType(CostClass cost_class, const OpCall& call) {
  const bool product = cost_class == CostClass::kMatmul || cost_class == CostClass::kConv;
  if (product && call.has_input(0) && call.has_input(1)) {
    const DType a = call.inputs[0].dtype, b = call.inputs[1].dtype;
    if (IsFloat(a) && IsFloat(b)) return BytesPerElement(a) >= BytesPerElement(b) ? a : b;
  }
  for (const TensorType& type : call.outputs) {
    if (IsFloat(type.dtype)) return type.dtype;
  }
  return call.inputs.empty() ? DType::kF32 : call.inputs[0].dtype;
}

}  // namespace

Work WorkOf(const OpDef* op, const OpCall& call, const Cost& cost) {
  const CostClass cost_class = op == nullptr ? CostClass::kMove : op->cost_class;
  return {cost_class, PricedType(cost_class, call), cost};
}

const char* BoundName(Bound bound) {
  static constexpr const char* kNames[] = {"compute", "memory", "latency"};
  return kNames[static_cast<size_t>(bound)];
}

double CostModel::CopySeconds(const TensorType& type, const KernelChoice& reorder) const {
  return Seconds({CostClass::kMove, type.dtype, {0, type.bytes(), type.bytes()}}, reorder);
}

}  // namespace ridge

#include "ridge/learn/clipping.h"

namespace ridge {

Value ClipByGlobalNorm(GraphBuilder& b, double max_norm, std::vector<Value>& grads) {
  Value sum;
  for (Value grad : grads) {
    const Value squares = Sum(grad * grad);
    sum = sum.valid() ? sum + squares : squares;
  }
  const Value norm = Op("sqrt", {sum}, {}, "grad_norm");
  if (!b.ok()) return {};
  const Value ratio = max_norm / (norm + 1e-6);
  const Value scale = Op("minimum", {ratio, ScalarLike(ratio, 1)}, {}, "clip_scale");
  for (Value& grad : grads) grad = grad * scale;
  return norm;
}

}  // namespace ridge

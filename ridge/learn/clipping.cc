#include "ridge/learn/clipping.h"

namespace ridge {

// Gradients themselves are multiplied once, by both factors: sums over slices are read as they are
// behind the loop.
Value ClipByGlobalNorm(GraphBuilder& b, double max_norm, std::vector<Value>& grads, Value inverse) {
  Value sum;
  for (Value grad : grads) {
    if (inverse.valid()) grad = grad * Cast(inverse, grad.dtype());
    const Value squares = Sum(grad * grad);
    sum = sum.valid() ? sum + squares : squares;
  }
  const Value norm = Op("sqrt", {sum}, {}, "grad_norm");
  if (!b.ok()) return {};
  const Value ratio = max_norm / (norm + 1e-6);
  Value scale = Op("minimum", {ratio, ScalarLike(ratio, 1)}, {}, "clip_scale");
  if (inverse.valid()) scale = scale * Cast(inverse, scale.dtype());
  for (Value& grad : grads) grad = grad * scale;
  return norm;
}

}  // namespace ridge

#include "ridge/learn/clipping.h"

namespace ridge {

Value ClipByGlobalNorm(GraphBuilder& b, double max_norm, std::vector<Value>& grads) {
  Value sum;
  for (Value grad : grads) {
    const Value squares = b.ReduceSum(b.Mul(grad, grad), {}, /*keep_dims=*/false);
    sum = sum.valid() ? b.Add(sum, squares) : squares;
  }
  const Value norm = b.Op("sqrt", {sum}, {}, "grad_norm");
  if (!b.ok()) return {};
  const DType dtype = b.type(norm).dtype;
  const Value ratio = b.Div(b.Scalar(dtype, max_norm), b.AddScalar(norm, 1e-6));
  const Value scale = b.Op("minimum", {ratio, b.Scalar(dtype, 1)}, {}, "clip_scale");
  for (Value& grad : grads) grad = b.Mul(grad, scale);
  return norm;
}

}  // namespace ridge

#include "ridge/graph/grad_builder.h"

#include <fmt/format.h>

namespace ridge {

GradBuilder::GradBuilder(GraphBuilder& builder, const Node& node, std::vector<Value> output_grads,
                         std::vector<bool> needs_grad)
    : builder_(builder),
      node_(node),
      output_grads_(std::move(output_grads)),
      needs_grad_(std::move(needs_grad)),
      input_grads_(node.inputs.size()) {}

Value GradBuilder::x(size_t i) const {
  return i < node_.inputs.size() ? builder_.At(node_.inputs[i]) : Value();
}

Value GradBuilder::y(size_t i) const { return builder_.At(node_.outputs.at(i)); }

Value GradBuilder::dy(size_t i) {
  if (!output_grads_[i].valid()) {
    output_grads_[i] = Expand(ScalarLike(y(i), 0), y(i).dims());
  }
  return output_grads_[i];
}

void GradBuilder::SetGrad(size_t i, Value v) {
  if (!needs_dx(i) || !v.valid()) return;
  const TensorType& wanted = x(i).type();
  const Result<Dims> both = BroadcastDims(wanted.dims, v.dims());
  if (both.ok() && *both == v.dims()) v = SumTo(v, wanted.dims);
  RIDGE_CHECK(v.type() == wanted,
              fmt::format("the gradient of input {} of {} is {}, the input {}", i, node_.op->name,
                          TypeToString(v.type()), TypeToString(wanted)));
  input_grads_[i] = v;
}

}  // namespace ridge

#include "ridge/graph/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/graph/interpret.h"

namespace ridge {
namespace {

// Of one folded node, inputs and outputs together: the interpreter holds them as doubles.
constexpr int64_t kMostFoldedElements = int64_t{1} << 23;

}  // namespace

void GraphBuilder::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Value GraphBuilder::Input(const std::string& name, TensorType type,
                          std::vector<std::string> dim_names) {
  if (!ok()) return {};
  return {graph_.AddInput(graph_.UniqueName(name), std::move(type), std::move(dim_names))};
}

Value GraphBuilder::Parameter(const std::string& name, TensorType type, Init init) {
  if (!ok()) return {};
  return {graph_.AddVariable(ValueKind::kParameter, graph_.UniqueName(name), std::move(type),
                             std::move(init))};
}

Value GraphBuilder::State(const std::string& name, TensorType type, Init init, ValueRole role) {
  if (!ok()) return {};
  const ValueId id = graph_.AddVariable(ValueKind::kState, graph_.UniqueName(name), std::move(type),
                                        std::move(init));
  graph_.mutable_value(id).role = role;
  return {id};
}

Value GraphBuilder::Constant(Tensor tensor, const std::string& name) {
  if (!ok()) return {};
  return {graph_.AddConstant(graph_.UniqueName(name), std::move(tensor))};
}

Value GraphBuilder::Scalar(DType dtype, double value) {
  return Constant(Tensor::Scalar(dtype, value));
}

std::vector<Value> GraphBuilder::OpOutputs(const char* op, std::vector<Value> inputs, AttrMap attrs,
                                           const std::string& name) {
  const OpDef* def = FindOp(op);
  if (def == nullptr) Fail(Status(ErrorCode::kInternal, fmt::format("no operator '{}'", op)));
  if (!ok()) return std::vector<Value>(def == nullptr ? 1 : def->output_names.size());
  std::vector<ValueId> ids;
  for (Value v : inputs) ids.push_back(v.id);
  while (!ids.empty() && ids.back() == kNoValue) ids.pop_back();
  if (Folds(ids)) {
    std::vector<Value> folded = Fold(*def, ids, attrs, name.empty() ? op : name);
    if (!folded.empty()) return folded;
  }
  Result<NodeId> node = graph_.AddNode(*def, std::move(ids), std::move(attrs),
                                       {graph_.UniqueName(name.empty() ? op : name)}, location_);
  if (!node.ok()) {
    Fail(node.status());
    return std::vector<Value>(def->output_names.size());
  }
  std::vector<Value> outputs;
  for (ValueId id : graph_.node(*node).outputs) outputs.push_back({id});
  return outputs;
}

bool GraphBuilder::Folds(const std::vector<ValueId>& inputs) const {
  if (fold_work_ <= 0) return false;
  for (ValueId id : inputs) {
    if (id != kNoValue && graph_.value(id).kind != ValueKind::kConstant) return false;
  }
  return true;
}

std::vector<Value> GraphBuilder::Fold(const OpDef& op, const std::vector<ValueId>& inputs,
                                      const AttrMap& attrs, const std::string& name) {
  OpCall call;
  call.where = fmt::format("{} '{}'", op.name, name);
  call.attrs = attrs;
  std::vector<Tensor> tensors;
  int64_t elements = 0;
  for (ValueId id : inputs) {
    call.inputs.push_back(id == kNoValue ? OpCall::Absent() : graph_.type(id));
    tensors.push_back(id == kNoValue ? Tensor() : graph_.value(id).constant);
    elements += tensors.back().elements();
  }
  Result<std::vector<TensorType>> types = InferCall(op, call);
  if (!types.ok()) return {};  // adding the node reports it
  call.outputs = std::move(*types);
  int64_t kept_bytes = 0;
  for (const TensorType& type : call.outputs) {
    if (type.elements() > kMostFoldedElements) return {};
    elements += type.elements();
    kept_bytes += type.bytes();
  }
  const int64_t work = elements + kept_bytes + CallCost(op, call).flops;
  if (elements > kMostFoldedElements || work > fold_work_) return {};
  fold_work_ -= work;
  std::vector<Value> results;
  for (Tensor& tensor : EvaluateNode(op, call, tensors))
    results.push_back(Constant(std::move(tensor), name));
  return results;
}

Value GraphBuilder::Op(const char* op, std::vector<Value> inputs, AttrMap attrs,
                       const std::string& name) {
  return OpOutputs(op, std::move(inputs), std::move(attrs), name)[0];
}

void GraphBuilder::Output(const std::string& name, Value value) {
  if (ok()) graph_.AddOutput(name, value.id);
}

void GraphBuilder::Update(Value variable, Value value) {
  if (ok()) graph_.AddUpdate(variable.id, value.id);
}

const TensorType& GraphBuilder::type(Value v) const {
  static const TensorType kNone;  // after an error: callers go on without effect
  return v.valid() ? graph_.type(v.id) : kNone;
}

Value GraphBuilder::MulScalar(Value a, double s) { return Mul(a, Scalar(type(a).dtype, s)); }
Value GraphBuilder::AddScalar(Value a, double s) { return Add(a, Scalar(type(a).dtype, s)); }

Value GraphBuilder::Cast(Value a, DType to) {
  if (type(a).dtype == to) return a;
  return Op("cast", {a}, {{"to", std::string(DTypeName(to))}});
}

Value GraphBuilder::ReduceSum(Value x, std::vector<int64_t> axes, bool keep_dims) {
  return Op("reduce_sum", {x}, {{"axes", std::move(axes)}, {"keep_dims", int64_t{keep_dims}}});
}

Value GraphBuilder::ReduceMean(Value x, std::vector<int64_t> axes, bool keep_dims) {
  return Op("reduce_mean", {x}, {{"axes", std::move(axes)}, {"keep_dims", int64_t{keep_dims}}});
}

Value GraphBuilder::MatMul(Value a, Value b, bool transpose_a, bool transpose_b) {
  return Op("matmul", {a, b},
            {{"transpose_a", int64_t{transpose_a}}, {"transpose_b", int64_t{transpose_b}}});
}

Value GraphBuilder::Reshape(Value x, Dims dims) {
  return Op("reshape", {x}, {{"dims", std::move(dims)}});
}

Value GraphBuilder::Transpose(Value x, std::vector<int64_t> permutation) {
  return Op("transpose", {x}, {{"permutation", std::move(permutation)}});
}

Value GraphBuilder::Expand(Value x, Dims to) {
  if (dims(x) == to) return x;
  return Op("expand", {x}, {{"dims", std::move(to)}});
}

Value GraphBuilder::SumTo(Value x, const Dims& to) {
  if (!x.valid() || dims(x) == to) return x;
  const Dims from = dims(x);
  const size_t extra = from.size() - to.size();
  std::vector<int64_t> leading, stretched;
  for (size_t d = 0; d < from.size(); ++d) {
    if (d < extra) {
      leading.push_back(static_cast<int64_t>(d));
    } else if (to[d - extra] == 1 && from[d] != 1) {
      stretched.push_back(static_cast<int64_t>(d - extra));
    }
  }
  if (!leading.empty()) x = ReduceSum(x, leading, /*keep_dims=*/false);
  return stretched.empty() ? x : ReduceSum(x, stretched, /*keep_dims=*/true);
}

Value GraphBuilder::Linear(Value x, int64_t out, const std::string& name, bool bias) {
  if (!x.valid()) return {};
  const TensorType in = type(x);
  const int64_t width = in.dims.back();
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(width, 1)));
  const Value weight = Parameter(name + ".weight", {in.dtype, {out, width}}, Init::Uniform(bound));
  Value b;
  if (bias) b = Parameter(name + ".bias", {in.dtype, {out}}, Init::Uniform(bound));
  return Op("matmul", {x, weight, b}, {{"transpose_b", int64_t{1}}}, name);
}

Result<Graph> GraphBuilder::Build() const& {
  if (!ok()) return status_;
  return graph_;
}

Result<Graph> GraphBuilder::Build() && {
  if (!ok()) return status_;
  return std::move(graph_);
}

GradBuilder::GradBuilder(GraphBuilder& builder, const Node& node, std::vector<Value> output_grads,
                         std::vector<bool> needs_grad)
    : builder_(builder),
      node_(node),
      output_grads_(std::move(output_grads)),
      needs_grad_(std::move(needs_grad)),
      input_grads_(node.inputs.size()) {}

Value GradBuilder::input(size_t i) const {
  return i < node_.inputs.size() ? Value{node_.inputs[i]} : Value{};
}

Value GradBuilder::output(size_t i) const { return {node_.outputs.at(i)}; }

Value GradBuilder::output_grad(size_t i) {
  if (!output_grads_[i].valid()) {
    const TensorType& type = builder_.type(output(i));
    output_grads_[i] = builder_.Expand(builder_.Scalar(type.dtype, 0), type.dims);
  }
  return output_grads_[i];
}

void GradBuilder::set_input_grad(size_t i, Value v) {
  if (!needs_grad(i) || !v.valid()) return;
  RIDGE_CHECK(builder_.type(v) == builder_.type(input(i)),
              fmt::format("the gradient of input {} of {} is {}, the input {}", i, node_.op->name,
                          TypeToString(builder_.type(v)), TypeToString(builder_.type(input(i)))));
  input_grads_[i] = v;
}

}  // namespace ridge

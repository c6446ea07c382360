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
  return At(graph_.AddInput(graph_.UniqueName(name), std::move(type), std::move(dim_names)));
}

Value GraphBuilder::Parameter(const std::string& name, TensorType type, Init init) {
  if (!ok()) return {};
  return At(graph_.AddVariable(ValueKind::kParameter, graph_.UniqueName(name), std::move(type),
                               std::move(init)));
}

Value GraphBuilder::State(const std::string& name, TensorType type, Init init, ValueRole role) {
  if (!ok()) return {};
  const ValueId id = graph_.AddVariable(ValueKind::kState, graph_.UniqueName(name), std::move(type),
                                        std::move(init));
  graph_.mutable_value(id).role = role;
  return At(id);
}

Value GraphBuilder::Constant(Tensor tensor, const std::string& name) {
  if (!ok()) return {};
  return At(graph_.AddConstant(graph_.UniqueName(name), std::move(tensor)));
}

Value GraphBuilder::Scalar(DType dtype, double value) {
  return Constant(Tensor::Scalar(dtype, value));
}

std::vector<Value> GraphBuilder::AddOp(const char* op, const std::vector<Value>& inputs,
                                       AttrMap attrs, const std::string& name) {
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
  for (ValueId id : graph_.node(*node).outputs) outputs.push_back(At(id));
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

void GraphBuilder::Output(const std::string& name, Value value) {
  if (ok()) graph_.AddOutput(name, value.id);
}

void GraphBuilder::Update(Value variable, Value value) {
  if (ok()) graph_.AddUpdate(variable.id, value.id);
}

Value GraphBuilder::Linear(Value x, int64_t out, const std::string& name, bool bias) {
  if (!x.valid()) return {};
  const TensorType in = x.type();
  const int64_t width = in.dims.back();
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(width, 1)));
  const Value weight = Parameter(name + ".weight", {in.dtype, {out, width}}, Init::Uniform(bound));
  Value b;
  if (bias) b = Parameter(name + ".bias", {in.dtype, {out}}, Init::Uniform(bound));
  return Op("matmul", {x, weight, b}, {{"transpose_b", 1}}, name);
}

Result<Graph> GraphBuilder::Build() const& {
  if (!ok()) return status_;
  return graph_;
}

Result<Graph> GraphBuilder::Build() && {
  if (!ok()) return status_;
  return std::move(graph_);
}

}  // namespace ridge

#include "ridge/graph/interpret.h"

#include <fmt/format.h>

#include "ridge/core/random.h"

namespace ridge {
namespace {

// REQUIRES: the range fits the variable's dtype.
double InitialElement(const Init& init, const RandomKey& key, int64_t i) {
  switch (init.kind) {
    case Init::Kind::kZeros:
      return 0;
    case Init::Kind::kConstant:
      return init.scale;
    case Init::Kind::kUniform:
      return init.scale * (2.0 * ToUniform(Draw(key, 0, static_cast<uint64_t>(i))) - 1);
    case Init::Kind::kNormal:
      return init.scale * DrawNormal(key, 0, static_cast<uint64_t>(i));
    case Init::Kind::kTensor:
      return init.tensor.at(i);
  }
  return 0;
}

Result<Tensor> StartValue(const Graph& graph, const ValueInfo& info,
                          const std::map<std::string, Tensor>& given, uint64_t seed) {
  const auto found = given.find(info.name);
  if (found != given.end()) {
    if (found->second.type() == info.type) return found->second;
    return Status(ErrorCode::kInvalidArgument,
                  fmt::format("{}: '{}' is given as {}; the graph has {}", graph.name, info.name,
                              TypeToString(found->second.type()), TypeToString(info.type)));
  }
  if (info.kind == ValueKind::kConstant) return info.constant;
  if (info.kind != ValueKind::kInput) return InitialValue(info, seed);
  return Status(ErrorCode::kInvalidArgument,
                fmt::format("{}: input '{}' ({}) is not given", graph.name, info.name,
                            TypeToString(info.type)));
}

}  // namespace

void FillInitialValue(const ValueInfo& variable, uint64_t seed, void* data) {
  const RandomKey key{seed, StableHash(variable.name), 0};
  const int64_t count = variable.type.elements();
  if (variable.init.kind == Init::Kind::kUniform) {  // four elements a block
    for (int64_t i = 0; i < count; i += 4) {
      const auto words = DrawBlock(key, 0, static_cast<uint64_t>(i / 4));
      for (int64_t k = 0; k < 4 && i + k < count; ++k) {
        const double u = 2.0 * ToUniform(words[static_cast<size_t>(k)]) - 1;
        StoreFromDouble(variable.type.dtype, data, i + k, variable.init.scale * u);
      }
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    StoreFromDouble(variable.type.dtype, data, i, InitialElement(variable.init, key, i));
}

Tensor InitialValue(const ValueInfo& variable, uint64_t seed) {
  Tensor tensor(variable.type);
  FillInitialValue(variable, seed, tensor.mutable_data());
  return tensor;
}

std::vector<Tensor> EvaluateNode(const OpDef& op, const OpCall& call,
                                 const std::vector<Tensor>& inputs) {
  std::vector<std::vector<double>> storage;
  storage.reserve(inputs.size() + call.outputs.size());
  std::vector<const double*> in;
  for (const Tensor& tensor : inputs) {
    // An empty tensor still gets a pointer: only an absent input is null.
    auto& values = storage.emplace_back(static_cast<size_t>(tensor.elements()) + 1);
    if (tensor.data() != nullptr)
      ConvertToDouble(tensor.type().dtype, tensor.data(), values.data(), tensor.elements());
    in.push_back(tensor.data() == nullptr ? nullptr : values.data());
  }
  std::vector<double*> out;
  for (const TensorType& type : call.outputs)
    out.push_back(storage.emplace_back(static_cast<size_t>(type.elements()) + 1).data());
  RunReference(op, call, in, out);
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    outputs.emplace_back(call.outputs[i]);
    ConvertFromDouble(call.outputs[i].dtype, out[i], outputs.back().mutable_data(),
                      call.outputs[i].elements());
  }
  return outputs;
}

Result<std::vector<Tensor>> EvaluateGraph(const Graph& graph,
                                          const std::map<std::string, Tensor>& given,
                                          uint64_t seed) {
  std::vector<Tensor> values(graph.values().size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (graph.values()[i].kind == ValueKind::kResult) continue;
    RIDGE_ASSIGN_OR_RETURN(values[i], StartValue(graph, graph.values()[i], given, seed));
  }
  for (const Node& node : graph.nodes()) {
    std::vector<Tensor> inputs;
    for (ValueId id : node.inputs)
      inputs.push_back(id == kNoValue ? Tensor() : values[static_cast<size_t>(id)]);
    std::vector<Tensor> outputs = EvaluateNode(*node.op, graph.Call(node), inputs);
    for (size_t k = 0; k < outputs.size(); ++k)
      values[static_cast<size_t>(node.outputs[k])] = std::move(outputs[k]);
  }
  return values;
}

}  // namespace ridge

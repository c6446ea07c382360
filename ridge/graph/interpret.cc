#include "ridge/graph/interpret.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "ridge/core/random.h"

namespace ridge {
namespace {

// Four elements a block of random words.
void FillFromBlocks(const ValueInfo& variable, const RandomKey& key, void* data) {
  const Init& init = variable.init;
  const int64_t count = variable.type.elements();
  for (int64_t i = 0; i < count; i += 4) {
    const auto block = static_cast<uint64_t>(i / 4);
    std::array<double, 4> drawn{};
    if (init.kind == Init::Kind::kNormal) {
      drawn = DrawNormalBlock(key, 0, block);
    } else {
      const auto words = DrawBlock(key, 0, block);
      for (size_t k = 0; k < 4; ++k) drawn[k] = 2.0 * ToUniform(words[k]) - 1;
    }
    for (int64_t k = 0; k < 4 && i + k < count; ++k) {
      StoreFromDouble(variable.type.dtype, data, i + k, init.scale * drawn[static_cast<size_t>(k)]);
    }
  }
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

// What a view shows: all bits of the input, which doubles would not keep.
Tensor SameBytes(const Tensor& from, const TensorType& type) {
  Tensor copy(type);
  if (type.bytes() > 0)
    std::memcpy(copy.mutable_data(), from.data(), static_cast<size_t>(type.bytes()));
  return copy;
}

}  // namespace

void FillInitialValue(const ValueInfo& variable, uint64_t seed, void* data) {
  const RandomKey key{seed, StableHash(variable.name), 0};
  const int64_t count = variable.type.elements();
  const Init::Kind kind = variable.init.kind;
  if (kind == Init::Kind::kUniform || kind == Init::Kind::kNormal) {
    FillFromBlocks(variable, key, data);
    return;
  }
  const Tensor& start = variable.init.tensor;
  if (kind == Init::Kind::kTensor && start.type().dtype == variable.type.dtype) {
    if (count > 0) std::memcpy(data, start.data(), static_cast<size_t>(variable.type.bytes()));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const double x = kind == Init::Kind::kTensor     ? variable.init.tensor.at(i)
                     : kind == Init::Kind::kConstant ? variable.init.scale
                                                     : 0;
    StoreFromDouble(variable.type.dtype, data, i, x);
  }
}

Tensor InitialValue(const ValueInfo& variable, uint64_t seed) {
  Tensor tensor(variable.type);
  FillInitialValue(variable, seed, tensor.mutable_data());
  return tensor;
}

std::vector<Tensor> EvaluateNode(const OpDef& op, const OpCall& call,
                                 const std::vector<Tensor>& inputs) {
  if (op.alias_input >= 0)
    return {SameBytes(inputs[static_cast<size_t>(op.alias_input)], call.outputs[0])};
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

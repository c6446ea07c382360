#include "ridge/graph/interpret.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "ridge/core/nf4.h"
#include "ridge/core/random.h"
#include "ridge/core/rounding.h"
#include "ridge/core/tensor_file.h"

namespace ridge {
namespace {

// One element is converted; the others are copies of it.
void FillConstant(DType dtype, double value, int64_t bytes, std::byte* to) {
  constexpr int64_t kMostBytes = 4096;  // what is copied stays in the nearest cache
  int64_t done = std::min(bytes, BytesPerElement(dtype));
  if (done > 0) StoreFromDouble(dtype, to, 0, value);
  for (int64_t more = 0; done < bytes; done += more) {
    more = std::min({done, bytes - done, kMostBytes});
    std::memcpy(to + done, to, static_cast<size_t>(more));
  }
}

// Four elements a block of random words.
void FillFromBlocks(const ValueInfo& variable, const RandomKey& key, int64_t begin, int64_t end,
                    std::byte* to) {
  constexpr int64_t kStep = 4 * kDrawBlocks;
  static_assert(kInitialGrain % kStep == 0);
  const auto draw =
      variable.init.kind == Init::Kind::kNormal ? &DrawNormals : &DrawSymmetricUniforms;
  const DType dtype = variable.type.dtype;
  std::array<double, kInitialGrain> drawn;
  for (int64_t i = begin; i < end; i += kInitialGrain) {
    const int64_t count = std::min(kInitialGrain, end - i);
    const int64_t blocks = CeilDiv(count, kStep) * kDrawBlocks;
    draw(key, /*sample=*/0, static_cast<uint64_t>(i / 4), blocks, drawn.data());
    for (double& x : drawn) x *= variable.init.scale;
    ConvertFromDouble(dtype, drawn.data(), to + (i - begin) * BytesPerElement(dtype), count);
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

Status FillNf4(const Init& init, uint64_t seed, int64_t begin, int64_t end, std::byte* to);

// Elements [begin, end), written from `to` on.
Status FillPiece(const ValueInfo& variable, uint64_t seed, int64_t begin, int64_t end,
                 std::byte* to) {
  const Init& init = variable.init;
  const DType dtype = variable.type.dtype;
  switch (init.kind) {
    case Init::Kind::kUniform:
    case Init::Kind::kNormal:
      FillFromBlocks(variable, {seed, StableHash(variable.name), 0}, begin, end, to);
      return Status();
    case Init::Kind::kZeros:
    case Init::Kind::kConstant:
      FillConstant(dtype, init.kind == Init::Kind::kConstant ? init.scale : 0,
                   (end - begin) * BytesPerElement(dtype), to);
      return Status();
    case Init::Kind::kTensor:
      return ReadConverted(init.tensor, dtype, begin, end, to);
    case Init::Kind::kNf4Codes:
    case Init::Kind::kNf4Scales:
      return FillNf4(init, seed, begin, end, to);
  }
  return Status();
}

// Codes or scales of `count` floats, appended at `to`; returns where the next ones go.
std::byte* StoreNf4(Init::Kind part, std::span<const float> floats, std::byte* to) {
  const size_t block = kNf4Block;
  for (size_t i = 0; i < floats.size(); i += block) {
    const auto numbers = floats.subspan(i, std::min(block, floats.size() - i));
    const uint16_t scale = Nf4Scale(numbers);
    if (part == Init::Kind::kNf4Scales) {
      std::memcpy(to, &scale, sizeof(scale));
      to += sizeof(scale);
    } else {
      EncodeNf4(numbers, scale, reinterpret_cast<uint8_t*>(to));
      to += Nf4CodeBytes(static_cast<int64_t>(numbers.size()));
    }
  }
  return to;
}

// The floats of the variable are made piece by piece, so that they are never there as a whole.
Status FillNf4(const Init& init, uint64_t seed, int64_t begin, int64_t end, std::byte* to) {
  const ValueInfo& source = *init.quantized;
  const int64_t floats_each = init.kind == Init::Kind::kNf4Codes ? 2 : kNf4Block;
  const int64_t last = std::min(end * floats_each, source.type.elements());
  constexpr int64_t kPiece = 4 * kInitialGrain;
  std::array<double, kPiece> wide;
  std::array<float, kPiece> floats;
  std::array<std::byte, kPiece * sizeof(double)> stored;
  for (int64_t i = begin * floats_each; i < last; i += kPiece) {
    const int64_t count = std::min(kPiece, last - i);
    RIDGE_RETURN_IF_ERROR(FillPiece(source, seed, i, i + count, stored.data()));
    ConvertToDouble(source.type.dtype, stored.data(), wide.data(), count);
    std::copy_n(wide.begin(), count, floats.begin());
    to = StoreNf4(init.kind, {floats.data(), static_cast<size_t>(count)}, to);
  }
  return Status();
}

}  // namespace

Status FillInitialRange(const ValueInfo& variable, uint64_t seed, int64_t begin, int64_t end,
                        void* data) {
  const int64_t offset = begin * BytesPerElement(variable.type.dtype);
  return FillInitialPiece(variable, seed, begin, end, static_cast<std::byte*>(data) + offset);
}

Status FillInitialPiece(const ValueInfo& variable, uint64_t seed, int64_t begin, int64_t end,
                        void* to) {
  RIDGE_CHECK(begin % kInitialGrain == 0, "a piece begins at a multiple of the grain");
  if (begin >= end) return Status();
  return FillPiece(variable, seed, begin, end, static_cast<std::byte*>(to));
}

Status FillInitialValue(const ValueInfo& variable, uint64_t seed, void* data) {
  return FillInitialRange(variable, seed, 0, variable.type.elements(), data);
}

Result<Tensor> InitialValue(const ValueInfo& variable, uint64_t seed) {
  Tensor tensor(variable.type);
  RIDGE_RETURN_IF_ERROR(FillInitialValue(variable, seed, tensor.mutable_data()));
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

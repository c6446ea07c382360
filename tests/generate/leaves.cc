#include "tests/generate/leaves.h"

#include <array>
#include <cstdlib>

#include "ridge/core/random.h"
#include "ridge/graph/interpret.h"
#include "ridge/learn/training_graph.h"

namespace ridge {
namespace {

constexpr char kBelow[] = "below";

int64_t BelowOf(const std::string& name) {
  const size_t at = name.rfind(kBelow);
  if (at == std::string::npos) return 2;
  return std::max<int64_t>(1, std::atoll(name.c_str() + at + sizeof(kBelow) - 1));
}

Tensor InputNumbers(const ValueInfo& input) {
  Tensor tensor(input.type);
  const RandomKey key{.seed = 1, .stream = StableHash(input.name)};
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const uint32_t word = Draw(key, /*sample=*/0, static_cast<uint64_t>(i));
    const double number = IsFloat(input.type.dtype)
                              ? 2.0 * ToUniform(word) - 1
                              : static_cast<double>(word % BelowOf(input.name));
    StoreFromDouble(input.type.dtype, tensor.mutable_data(), i, number);
  }
  return tensor;
}

}  // namespace

Tensor LeafNumbers(const ValueInfo& leaf) {
  if (leaf.kind != ValueKind::kInput) return *InitialValue(leaf, /*seed=*/0);
  if (leaf.name == kRngInput) return Tensor::FromInts({3}, std::array<int64_t, 3>{0, 1, 0});
  return InputNumbers(leaf);
}

NamedTensors LeavesOf(const Graph& graph) {
  NamedTensors leaves;
  for (const ValueInfo& info : graph.values()) {
    const bool made = info.kind == ValueKind::kResult || info.kind == ValueKind::kConstant;
    if (!made) leaves[info.name] = LeafNumbers(info);
  }
  return leaves;
}

NamedTensors LeavesAs(const Graph& graph, const NamedTensors& leaves) {
  NamedTensors converted;
  for (const auto& [name, tensor] : leaves) {
    const ValueId id = graph.FindValue(name);
    if (id == kNoValue) continue;
    Tensor to({graph.type(id).dtype, tensor.type().dims});
    for (int64_t i = 0; i < to.elements(); ++i)
      StoreFromDouble(to.type().dtype, to.mutable_data(), i, tensor.at(i));
    converted[name] = std::move(to);
  }
  return converted;
}

}  // namespace ridge

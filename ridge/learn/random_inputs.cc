#include "ridge/learn/random_inputs.h"

#include <array>
#include <vector>

#include "ridge/core/random.h"
#include "ridge/learn/index_extent.h"
#include "ridge/learn/training_graph.h"

namespace ridge {
namespace {

Tensor DrawInput(const ValueInfo& input, int64_t extent, uint64_t seed) {
  Tensor tensor(input.type);
  const RandomKey key = {.seed = seed, .stream = StableHash(input.name)};
  const bool is_float = IsFloat(input.type.dtype);
  const int64_t below = extent == 0 || input.type.dtype == DType::kBool ? 2 : extent;
  std::array<uint32_t, 4> block{};
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (i % 4 == 0) block = DrawBlock(key, 0, static_cast<uint64_t>(i / 4));
    const uint32_t word = block[static_cast<size_t>(i % 4)];
    const double value = is_float ? 2.0 * static_cast<double>(ToUniform(word)) - 1.0
                                  : static_cast<double>(word % static_cast<uint64_t>(below));
    StoreFromDouble(input.type.dtype, tensor.mutable_data(), i, value);
  }
  return tensor;
}

}  // namespace

std::map<std::string, Tensor> RandomInputs(const Graph& graph, uint64_t seed) {
  const std::vector<int64_t> extents = IndexExtents(graph);
  std::map<std::string, Tensor> inputs;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    const ValueInfo& info = graph.value(id);
    if (info.name == kRngInput && info.type == TensorType{DType::kI64, {3}}) {
      inputs[info.name] =
          Tensor::FromInts({3}, std::vector<int64_t>{static_cast<int64_t>(seed), 1, 0});
    } else {
      inputs[info.name] = DrawInput(info, extents[static_cast<size_t>(id)], seed);
    }
  }
  return inputs;
}

}  // namespace ridge

#include "ridge/learn/made_up_inputs.h"

#include <algorithm>
#include <vector>

#include "ridge/core/random.h"
#include "ridge/learn/training_graph.h"

namespace ridge {
namespace {

constexpr int64_t kNoLimit = INT64_MAX;

// The smallest extent that input `index` of the node indexes.
int64_t LimitOf(const Graph& graph, const Node& node, size_t index) {
  if (node.op->no_gradient_inputs.empty()) return kNoLimit;
  const auto& indices = node.op->no_gradient_inputs;
  if (std::find(indices.begin(), indices.end(), static_cast<int>(index)) == indices.end()) {
    return kNoLimit;
  }
  // Indices and labels index input 0.
  if (index == 0 || node.inputs[0] == kNoValue) return kNoLimit;
  const Dims& dims = graph.type(node.inputs[0]).dims;
  int64_t limit = kNoLimit;
  if (const auto axis = node.attrs.find("axis"); axis != node.attrs.end() && !dims.empty()) {
    const int64_t a = std::get<int64_t>(axis->second);
    limit = dims[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(dims.size()) : a)];
  } else {
    for (const int64_t extent : dims) limit = std::min(limit, extent);
    if (node.op->name == "softmax_cross_entropy" && !dims.empty()) limit = dims.back();
  }
  return std::max<int64_t>(limit, 1);
}

// For each value the limit that its readers set; it propagates backward through integer values.
std::vector<int64_t> IndexLimits(const Graph& graph) {
  std::vector<int64_t> limits(graph.values().size(), kNoLimit);
  for (size_t n = graph.nodes().size(); n-- > 0;) {
    const Node& node = graph.nodes()[n];
    int64_t passed = kNoLimit;
    for (ValueId id : node.outputs) {
      if (!IsFloat(graph.type(id).dtype))
        passed = std::min(passed, limits[static_cast<size_t>(id)]);
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      int64_t& limit = limits[static_cast<size_t>(node.inputs[i])];
      limit = std::min({limit, passed, LimitOf(graph, node, i)});
    }
  }
  return limits;
}

Tensor MakeUp(const ValueInfo& input, int64_t limit, uint64_t seed) {
  Tensor tensor(input.type);
  const RandomKey key = {.seed = seed, .stream = StableHash(input.name)};
  const bool is_float = IsFloat(input.type.dtype);
  const int64_t below = limit == kNoLimit || input.type.dtype == DType::kBool ? 2 : limit;
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

std::map<std::string, Tensor> MadeUpInputs(const Graph& graph, uint64_t seed) {
  const std::vector<int64_t> limits = IndexLimits(graph);
  std::map<std::string, Tensor> inputs;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) {
    const ValueInfo& info = graph.value(id);
    if (info.name == kRngInput && info.type == TensorType{DType::kI64, {3}}) {
      inputs[info.name] =
          Tensor::FromInts({3}, std::vector<int64_t>{static_cast<int64_t>(seed), 1, 0});
    } else {
      inputs[info.name] = MakeUp(info, limits[static_cast<size_t>(id)], seed);
    }
  }
  return inputs;
}

}  // namespace ridge

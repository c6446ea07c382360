// Value numbering in one walk: a node's key is its operator, its attributes as text and the new
// values of its inputs.  The first of equals stays, so later names go.
//
// Constants are equal by their bits, -0.0 is not 0.0.  Inputs of commutative operators are not
// sorted: add(a, b) and add(b, a) stay two nodes.
#include <fmt/format.h>

#include <unordered_map>

#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/text_attr.h"

namespace ridge {
namespace {

std::string Key(const Node& node, const std::vector<ValueId>& inputs) {
  std::string key = node.op->name;
  for (ValueId id : inputs) key += fmt::format(",{}", id);
  for (const auto& [name, value] : node.attrs) {
    key += fmt::format(";{}={}", name, PrintAttr(value));
  }
  return key;
}

// FNV-1a over the bytes; equal hashes are compared.
uint64_t HashTensor(const Tensor& tensor) {
  uint64_t hash = 0xCBF29CE484222325;
  const auto mix = [&hash](uint64_t word) { hash = (hash ^ word) * 0x100000001B3; };
  mix(static_cast<uint64_t>(tensor.type().dtype));
  for (int64_t extent : tensor.type().dims) mix(static_cast<uint64_t>(extent));
  for (int64_t i = 0; i < tensor.bytes(); ++i) mix(tensor.as<uint8_t>()[i]);
  return hash;
}

class Merger {
 public:
  explicit Merger(const Graph& graph) : rewriter_(graph) {}

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) { return Visit(node); }));
    return rewriter_.Finish();
  }

 private:
  Status Visit(const Node& node) {
    const std::vector<ValueId> inputs = Canonical(rewriter_.Map(node.inputs));
    const auto [known, fresh] = nodes_.emplace(Key(node, inputs), kNoValue);
    if (fresh) {
      RIDGE_RETURN_IF_ERROR(
          rewriter_.Emit(*node.op, inputs, node.attrs, node.outputs, node.location));
      known->second = rewriter_.to().value(rewriter_.Map(node.outputs[0])).producer;
      return Status();
    }
    const Node& same = rewriter_.to().node(known->second);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      rewriter_.Set(node.outputs[i], same.outputs[i]);
    }
    return Status();
  }

  // Equal constants are read as the first of them; the others are dead.
  std::vector<ValueId> Canonical(std::vector<ValueId> inputs) {
    for (ValueId& id : inputs) {
      if (id != kNoValue && rewriter_.to().value(id).kind == ValueKind::kConstant) {
        id = FirstEqual(id);
      }
    }
    return inputs;
  }

  ValueId FirstEqual(ValueId id) {
    const auto [known, fresh] = first_equal_.emplace(id, id);
    if (!fresh) return known->second;
    const Tensor& tensor = rewriter_.to().value(id).constant;
    std::vector<ValueId>& candidates = constants_[HashTensor(tensor)];
    for (ValueId other : candidates) {
      if (rewriter_.to().value(other).constant.same_bits(tensor)) return known->second = other;
    }
    candidates.push_back(id);
    return id;
  }

  GraphRewriter rewriter_;
  std::unordered_map<std::string, NodeId> nodes_;
  std::unordered_map<uint64_t, std::vector<ValueId>> constants_;
  std::unordered_map<ValueId, ValueId> first_equal_;
};

}  // namespace

Result<Graph> MergeCommon(const Graph& graph) { return Merger(graph).Run(); }

}  // namespace ridge

// Value numbering in one walk: two nodes are equal when their operators, their attributes and the
// numbers of their inputs are.  The first of equals is kept; the names of later ones are dropped.
//
// Constants are equal by their bits, -0.0 is not 0.0.  Inputs of commutative operators are not
// sorted: add(a, b) and add(b, a) stay two nodes.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>

#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

constexpr size_t kHashedBytes = 2048;  // of each end of a tensor

// FNV-1a over words; equal hashes are compared.
class Hash {
 public:
  uint64_t value() const { return value_; }
  void Add(uint64_t word) { value_ = (value_ ^ word) * 0x100000001B3; }

  void AddBytes(const void* bytes, size_t count) {
    const char* at = static_cast<const char*>(bytes);
    for (; count >= sizeof(uint64_t); at += sizeof(uint64_t), count -= sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, at, sizeof(word));
      Add(word);
    }
    for (; count > 0; --count) Add(static_cast<unsigned char>(*at++));
  }

  template <typename T>
  void AddList(const std::vector<T>& list) {
    Add(list.size());
    AddBytes(list.data(), list.size() * sizeof(T));
  }

  // Hashes only the ends of large tensors: they may be mapped from a file that is not read.
  void AddTensor(const Tensor& tensor) {
    Add(static_cast<uint64_t>(tensor.type().dtype));
    AddList(tensor.type().dims);
    const auto bytes = static_cast<size_t>(tensor.bytes());
    const auto* data = tensor.as<char>();
    const size_t head = std::min(bytes, kHashedBytes), tail = std::min(bytes - head, kHashedBytes);
    AddBytes(data, head);
    AddBytes(data + bytes - tail, tail);
  }

  void AddAttr(const Attr& attr) {
    Add(attr.index());
    if (const auto* i = std::get_if<int64_t>(&attr)) Add(static_cast<uint64_t>(*i));
    if (const auto* x = std::get_if<double>(&attr)) AddBytes(x, sizeof(*x));
    if (const auto* text = std::get_if<std::string>(&attr)) AddBytes(text->data(), text->size());
    if (const auto* list = std::get_if<std::vector<int64_t>>(&attr)) AddList(*list);
    if (const auto* list = std::get_if<std::vector<double>>(&attr)) AddList(*list);
    if (const auto* tensor = std::get_if<Tensor>(&attr)) AddTensor(*tensor);
  }

 private:
  uint64_t value_ = 0xCBF29CE484222325;
};

uint64_t HashTensor(const Tensor& tensor) {
  Hash hash;
  hash.AddTensor(tensor);
  return hash.value();
}

// By value: the value of the graph that replaces it.
class Numbering {
 public:
  explicit Numbering(const Graph& graph) : graph_(graph), first_(graph.values().size()) {
    std::iota(first_.begin(), first_.end(), ValueId{0});
    for (size_t i = 0; i < first_.size(); ++i) {
      const ValueInfo& value = graph.values()[i];
      if (value.kind == ValueKind::kConstant) {
        first_[i] = FirstEqual(static_cast<ValueId>(i));
      } else if (value.kind == ValueKind::kResult && value.output_index == 0 &&
                 value.role != ValueRole::kRecomputed) {
        Number(value.producer);
      }
    }
  }

  // A copy of an earlier node.
  bool IsCopy(const Node& node) const { return First(node.outputs[0]) != node.outputs[0]; }
  ValueId First(ValueId id) const { return id == kNoValue ? id : first_[static_cast<size_t>(id)]; }
  bool any() const { return any_; }

 private:
  ValueId FirstEqual(ValueId id) {
    const Tensor& tensor = graph_.value(id).constant;
    std::vector<ValueId>& candidates = constants_[HashTensor(tensor)];
    for (ValueId other : candidates) {
      if (!graph_.value(other).constant.same_bits(tensor)) continue;
      any_ = true;
      return other;
    }
    candidates.push_back(id);
    return id;
  }

  void Number(NodeId n) {
    const Node& node = graph_.node(n);
    std::vector<NodeId>& candidates = nodes_[HashNode(node)];
    for (NodeId other : candidates) {
      const Node& same = graph_.node(other);
      if (!Equal(node, same)) continue;
      any_ = true;
      for (size_t i = 0; i < node.outputs.size(); ++i)
        first_[static_cast<size_t>(node.outputs[i])] = same.outputs[i];
      return;
    }
    candidates.push_back(n);
  }

  uint64_t HashNode(const Node& node) const {
    Hash hash;
    hash.AddBytes(node.op->name.data(), node.op->name.size());
    for (ValueId id : node.inputs) hash.Add(static_cast<uint64_t>(First(id)));
    for (const auto& [name, value] : node.attrs) hash.AddAttr(value);
    return hash.value();
  }

  bool Equal(const Node& a, const Node& b) const {
    if (a.op != b.op || a.inputs.size() != b.inputs.size()) return false;
    for (size_t i = 0; i < a.inputs.size(); ++i) {
      if (First(a.inputs[i]) != First(b.inputs[i])) return false;
    }
    return SameAttrs(a.attrs, b.attrs);
  }

  const Graph& graph_;
  std::vector<ValueId> first_;  // by value; all results of a node are numbered at its first
  std::unordered_map<uint64_t, std::vector<NodeId>> nodes_;       // by hash; look-up only
  std::unordered_map<uint64_t, std::vector<ValueId>> constants_;  // by hash; look-up only
  bool any_ = false;
};

// Copies are read as the first of them; constants among them are dead then, and stay.
Status Emit(const Node& node, const Numbering& numbering, GraphRewriter& rewriter) {
  if (!numbering.IsCopy(node)) {
    std::vector<ValueId> inputs;
    for (ValueId id : node.inputs) inputs.push_back(rewriter.Map(numbering.First(id)));
    return rewriter.CopyOn(node, std::move(inputs));
  }
  for (ValueId id : node.outputs) rewriter.Set(id, rewriter.Map(numbering.First(id)));
  return Status();
}

}  // namespace

Result<Graph> MergeCommon(Graph graph) {
  const Numbering numbering(graph);
  if (!numbering.any()) return graph;
  GraphRewriter rewriter(graph);
  RIDGE_RETURN_IF_ERROR(
      rewriter.Walk([&](const Node& node) { return Emit(node, numbering, rewriter); }));
  return rewriter.Finish();
}

}  // namespace ridge

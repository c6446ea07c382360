#include "ridge/lower/read_logits_once.h"

#include <algorithm>
#include <map>

#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

constexpr char kExtraOutputs[] = "extra_outputs";
constexpr size_t kLogSums = 1, kBest = 2;  // outputs of the loss
constexpr size_t kGradInputs = 3;          // without log_sums

// The readers of one value of logits.
struct Readers {
  const Node* loss = nullptr;  // the first
  std::vector<const Node*> argmaxes;
  bool has_gradient = false;
  ValueId log_sums = kNoValue;  // of the new graph, once the joined loss is there

  int64_t extra_outputs() const { return argmaxes.empty() ? 1 : 2; }
};

class LogitsJoiner {
 public:
  LogitsJoiner(const Graph& graph, const RewriteRules& rules) : graph_(graph), rewriter_(graph) {
    for (const Node& node : graph.nodes()) FindLoss(node);
    for (const Node& node : graph.nodes()) FindReader(node);
    std::erase_if(readers_, [&](const auto& entry) { return !Joins(entry.second, rules); });
  }

  bool Any() const { return !readers_.empty(); }

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) { return Visit(node); }));
    return rewriter_.Finish();
  }

 private:
  void FindLoss(const Node& node) {
    if (node.op->name != "softmax_cross_entropy" || node.attrs.integer(kExtraOutputs) != 0) return;
    Readers& readers = readers_[node.inputs[0]];
    if (readers.loss == nullptr) readers.loss = &node;
  }

  Readers* ReadersOf(const Node& node) {
    const auto found = readers_.find(node.inputs.empty() ? kNoValue : node.inputs[0]);
    return found == readers_.end() ? nullptr : &found->second;
  }

  void FindReader(const Node& node) {
    Readers* readers = ReadersOf(node);
    if (readers == nullptr) return;
    if (IsArgmax(node)) readers->argmaxes.push_back(&node);
    if (SearchesRows(node)) readers->has_gradient = true;
  }

  // Of each row, as the loss gives it.
  bool IsArgmax(const Node& node) const {
    if (node.op->name != "argmax" || node.attrs.integer("keep_dims") != 0) return false;
    const int64_t axis = node.attrs.integer("axis");
    return axis == -1 || axis == graph_.type(node.inputs[0]).rank() - 1;
  }

  static bool SearchesRows(const Node& node) {
    return node.op->name == "softmax_cross_entropy_grad" && node.inputs.size() == kGradInputs;
  }

  bool Joins(const Readers& readers, const RewriteRules& rules) const {
    if (readers.argmaxes.empty() && !readers.has_gradient) return false;
    OpCall call = graph_.Call(*readers.loss);
    call.attrs[kExtraOutputs] = readers.extra_outputs();
    Result<std::vector<TensorType>> types = InferCall(*readers.loss->op, call);
    if (!types.ok()) return false;
    call.outputs = *std::move(types);
    return rules.Fuses(*readers.loss->op, call);
  }

  Status Visit(const Node& node) {
    Readers* readers = ReadersOf(node);
    if (readers == nullptr) return rewriter_.Copy(node);
    if (&node == readers->loss) return Join(*readers);
    const bool labelled = IsThere(readers->loss->inputs[1]);
    if (IsArgmax(node) && labelled) return Join(*readers);
    if (!SearchesRows(node) || !labelled) return rewriter_.Copy(node);
    RIDGE_RETURN_IF_ERROR(Join(*readers));
    std::vector<ValueId> inputs = rewriter_.Use(node.inputs);
    inputs.push_back(readers->log_sums);
    return rewriter_.Emit(*node.op, std::move(inputs), node.attrs, node.outputs, node.location);
  }

  // Whether it has no producer, or one before this place.
  bool IsThere(ValueId id) const {
    return graph_.producer(id) == nullptr || rewriter_.Map(id) != kNoValue;
  }

  // The loss, where its first reader was.
  Status Join(Readers& readers) {
    if (readers.log_sums != kNoValue) return Status();
    const Node& loss = *readers.loss;
    AttrMap attrs = loss.attrs;
    attrs[kExtraOutputs] = readers.extra_outputs();
    RIDGE_RETURN_IF_ERROR(rewriter_.Emit(*loss.op, rewriter_.Use(loss.inputs), std::move(attrs),
                                         loss.outputs, loss.location));
    const std::vector<ValueId> made =
        rewriter_.to().producer(rewriter_.Map(loss.outputs[0]))->outputs;
    readers.log_sums = made[kLogSums];
    for (const Node* argmax : readers.argmaxes) rewriter_.Set(argmax->outputs[0], made[kBest]);
    return Status();
  }

  const Graph& graph_;
  GraphRewriter rewriter_;
  std::map<ValueId, Readers> readers_;  // by logits
};

}  // namespace

Result<Graph> ReadLogitsOnce(Graph graph, const RewriteRules& rules) {
  LogitsJoiner joiner(graph, rules);
  if (!joiner.Any()) return graph;
  return joiner.Run();
}

}  // namespace ridge

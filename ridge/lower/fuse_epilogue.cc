// A chain starts at the product and continues while the value has one reader, which is a step.
// The new node takes the position of the chain's last step: all its inputs are defined there.
// When two products meet in one add, the later takes it and the first becomes its extra input: a
// sum of many products (the gradient of a weight that every step of a recurrent network reads) then
// grows one by one.  If the first took it, all the others would have to be kept until the end.
#include "ridge/lower/fuse_epilogue.h"

#include <algorithm>

#include "ridge/graph/ops/shared/epilogue.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

constexpr size_t kFirstExtra = 3;  // after a, b, bias

// A product and the pointwise nodes it takes over, in order.
struct Chain {
  NodeId product = -1;
  std::vector<NodeId> steps;
};

class EpilogueFuser {
 public:
  EpilogueFuser(const Graph& graph, const RewriteRules& rules)
      : graph_(graph),
        rules_(rules),
        uses_(graph),
        taken_(graph.nodes().size(), false),
        ends_(graph.nodes().size(), -1),
        rewriter_(graph) {}

  // False when there are no chains: then the graph stays as it is.
  bool FindChains() {
    for (auto n = static_cast<NodeId>(graph_.nodes().size()); n-- > 0;) FollowChain(n);
    return !chains_.empty();
  }

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) { return Visit(node); }));
    return rewriter_.Finish();
  }

 private:
  void FollowChain(NodeId product) {
    const Node& node = graph_.node(product);
    if (node.op->name != "matmul" && node.op->name != "conv") return;
    Chain chain{product, {}};
    ValueId value = node.outputs[0];
    OpCall call = graph_.Call(node);
    // NarrowConvolutions follows.
    if (!rules_.GivesF32Sums(*node.op)) call.outputs[0].dtype = call.inputs[0].dtype;
    for (NodeId next = NextStep(value); next >= 0; next = NextStep(value)) {
      AddStep(graph_.node(next), call);
      if (!rules_.Fuses(*node.op, call)) break;
      chain.steps.push_back(next);
      taken_[static_cast<size_t>(next)] = true;
      value = graph_.node(next).outputs[0];
    }
    if (chain.steps.empty()) return;
    taken_[static_cast<size_t>(product)] = true;
    ends_[static_cast<size_t>(chain.steps.back())] = static_cast<int32_t>(chains_.size());
    chains_.push_back(std::move(chain));
  }

  // `call` is the product with the steps so far.
  static void AddStep(const Node& step, OpCall& call) {
    std::string& epilogue = std::get<std::string>(call.attrs["epilogue"]);
    epilogue += (epilogue.empty() ? "" : ",") + step.op->name;
    if (step.op->name != "add") return;
    call.inputs.resize(std::max(call.inputs.size(), kFirstExtra), OpCall::Absent());
    call.inputs.push_back(call.outputs[0]);
  }

  // The only reader of `value` when it can be a step, else -1.
  // A value that is computed twice has as many readers as both together, since an epilogue rounds
  // otherwise than a node of its own.
  NodeId NextStep(ValueId value) const {
    if (graph_.value(value).role == ValueRole::kRecomputed) return -1;
    const NodeId reader = uses_.OnlyReader(value);
    if (reader < 0 || taken_[static_cast<size_t>(reader)]) return -1;
    return IsStep(graph_.node(reader), value) ? reader : -1;
  }

  bool IsStep(const Node& node, ValueId value) const {
    const TensorType& type = graph_.type(value);
    if (node.outputs.size() != 1 || !(graph_.type(node.outputs[0]) == type)) return false;
    if (node.op->name == "add") return graph_.type(Extra(node, value)) == type;
    return IsEpilogueStep(*node.op) && SameAttrs(node.attrs, node.op->attr_defaults);
  }

  // The other input of an add.
  static ValueId Extra(const Node& add, ValueId value) {
    return add.inputs[0] == value ? add.inputs[1] : add.inputs[0];
  }

  Status Visit(const Node& node) {
    const auto id = static_cast<size_t>(graph_.IdOf(node));
    if (ends_[id] >= 0) return EmitChain(chains_[static_cast<size_t>(ends_[id])]);
    return taken_[id] ? Status() : rewriter_.Copy(node);
  }

  Status EmitChain(const Chain& chain) {
    const Node& product = graph_.node(chain.product);
    std::vector<ValueId> inputs = product.inputs;
    AttrMap attrs = product.attrs;
    std::string& epilogue = std::get<std::string>(attrs.at("epilogue"));
    ValueId value = product.outputs[0];
    for (NodeId id : chain.steps) {
      const Node& step = graph_.node(id);
      epilogue += (epilogue.empty() ? "" : ",") + step.op->name;
      if (step.op->name == "add") {
        inputs.resize(std::max(inputs.size(), kFirstExtra), kNoValue);
        inputs.push_back(Extra(step, value));
      }
      value = step.outputs[0];
    }
    return rewriter_.Emit(*product.op, rewriter_.Map(inputs), std::move(attrs), {value},
                          product.location);
  }

  const Graph& graph_;
  const RewriteRules& rules_;
  const GraphUses uses_;
  std::vector<bool> taken_;    // by node: it is part of a chain
  std::vector<int32_t> ends_;  // by node: the chain that ends here, or -1
  std::vector<Chain> chains_;
  GraphRewriter rewriter_;
};

}  // namespace

Result<Graph> FuseEpilogues(Graph graph, const RewriteRules& rules) {
  EpilogueFuser fuser(graph, rules);
  if (!fuser.FindChains()) return graph;
  return fuser.Run();
}

}  // namespace ridge

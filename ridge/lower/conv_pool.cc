// max_pool(relu(conv(x, w, b))) -> p, place = conv_pool(x, w, b)
// conv_grad_weight(x, max_pool_grad(index, relu_grad(dy, p))) -> conv_pool_grad_weight(x, place,
// dy)
//
// Both with non-overlapping 2x2 windows, with or without relu, if the values between have no other
// readers.  The gradient of the pool remains a node if it has other readers (the gradient of x); it
// then reads `place`, which equals `index` except in windows whose maximum relu clipped.
// relu_grad(., p) sets dy to 0 there, so every reader of `index` must take its dy from that
// relu_grad.
#include <algorithm>
#include <optional>

#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"
#include "ridge/lower/passes.h"

namespace ridge {
namespace {

bool AllEqual(const AttrMap& attrs, const char* name, int64_t wanted) {
  const auto& list = std::get<std::vector<int64_t>>(attrs.at(name));
  return std::all_of(list.begin(), list.end(), [wanted](int64_t v) { return v == wanted; });
}

// A convolution and what follows it.
struct Chain {
  const Node* conv = nullptr;
  const Node* relu = nullptr;  // may be absent, also when the epilogue holds it
  const Node* pool = nullptr;
  bool has_relu = false;
};

// A gradient of a pool whose every reader is a gradient of the chain's weights.
struct Backward {
  const Chain* chain = nullptr;
  const Node* mask = nullptr;       // relu_grad; nullptr without relu
  const Node* pool_grad = nullptr;  // reads the chain's index
  bool whole = false;               // every reader of it becomes a conv_pool_grad_weight
};

class Fuser {
 public:
  Fuser(const Graph& graph, const RewriteRules& rules)
      : graph_(graph), rules_(rules), uses_(graph), rewriter_(graph) {}

  bool FindChains() {
    gone_.assign(graph_.nodes().size(), false);
    chain_of_.assign(graph_.nodes().size(), -1);
    backward_of_.assign(graph_.nodes().size(), -1);
    for (const Node& node : graph_.nodes()) {
      if (node.op->name == "max_pool") TryPool(node);
    }
    return !chains_.empty();
  }

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) { return Visit(node); }));
    return rewriter_.Finish();
  }

 private:
  size_t IdOf(const Node& node) const { return static_cast<size_t>(graph_.IdOf(node)); }

  static bool IsPlainPool(const Node& pool) {
    const AttrMap& attrs = pool.attrs;
    return std::get<std::vector<int64_t>>(attrs.at("kernel")) == std::vector<int64_t>{2, 2} &&
           std::get<std::vector<int64_t>>(attrs.at("stride")) == std::vector<int64_t>{2, 2} &&
           AllEqual(attrs, "padding", 0) && AllEqual(attrs, "dilation", 1) &&
           std::get<int64_t>(attrs.at("ceil_mode")) == 0;
  }

  bool IsPlainConv(const Node& conv) const {
    const std::string& epilogue = std::get<std::string>(conv.attrs.at("epilogue"));
    return graph_.type(conv.outputs[0]).dtype == graph_.type(conv.inputs[0]).dtype &&
           AllEqual(conv.attrs, "stride", 1) && AllEqual(conv.attrs, "dilation", 1) &&
           std::get<int64_t>(conv.attrs.at("groups")) == 1 &&
           (epilogue.empty() || epilogue == "relu") && uses_.IsReadOnce(conv.outputs[0]);
  }

  static AttrMap AttrsOf(const Chain& chain) {
    return {{"padding", chain.conv->attrs.at("padding")},
            {"relu", int64_t{chain.has_relu}},
            {"keep_f32", chain.conv->attrs.at("keep_f32")}};
  }

  // Nodes that have a kernel are not given up for a node that has none.
  bool Fuses(const Chain& chain) const {
    OpCall call = graph_.Call(*chain.conv);
    call.outputs.clear();
    call.attrs = AttrsOf(chain);
    const OpDef& op = *FindOp("conv_pool");
    Result<std::vector<TensorType>> types = InferCall(op, call);
    if (!types.ok()) return false;
    call.outputs = *std::move(types);
    return rules_.Fuses(op, call);
  }

  void TryPool(const Node& pool) {
    if (!IsPlainPool(pool)) return;
    Chain chain;
    chain.pool = &pool;
    chain.relu = graph_.producer(pool.inputs[0], "relu");
    if (chain.relu != nullptr && !uses_.IsReadOnce(chain.relu->outputs[0])) return;
    chain.conv =
        graph_.producer(chain.relu != nullptr ? chain.relu->inputs[0] : pool.inputs[0], "conv");
    if (chain.conv == nullptr || !IsPlainConv(*chain.conv)) return;
    chain.has_relu =
        chain.relu != nullptr || !std::get<std::string>(chain.conv->attrs.at("epilogue")).empty();
    if (!Fuses(chain)) return;
    std::vector<Backward> gradients;
    for (const NodeId reader : uses_.ReadersOf(pool.outputs[1])) {
      const auto backward = MatchBackward(chain, graph_.node(reader));
      if (!backward) return;
      gradients.push_back(*backward);
    }
    if (!uses_.OnlyNodesRead(pool.outputs[1])) return;
    Take(chain, gradients);
  }

  // How `reader` of the chain's index can read `place` instead; nullopt when it cannot.
  std::optional<Backward> MatchBackward(const Chain& chain, const Node& reader) const {
    if (reader.op->name != "max_pool_grad" || reader.inputs[0] != chain.pool->outputs[1])
      return std::nullopt;
    Backward found{nullptr, nullptr, &reader, false};
    if (chain.has_relu) {
      found.mask = graph_.producer(reader.inputs[1], "relu_grad");
      if (found.mask == nullptr || found.mask->inputs[1] != chain.pool->outputs[0])
        return std::nullopt;
    }
    const std::span<const NodeId> users = uses_.ReadersOf(reader.outputs[0]);
    found.whole = !users.empty() && uses_.OnlyNodesRead(reader.outputs[0]) &&
                  std::all_of(users.begin(), users.end(), [&](NodeId user) {
                    return IsWeightGradient(chain, graph_.node(user), reader.outputs[0]);
                  });
    return found;
  }

  bool IsWeightGradient(const Chain& chain, const Node& node, ValueId spread) const {
    if (node.op->name != "conv_grad_weight") return false;
    if (node.inputs[0] != chain.conv->inputs[0] || node.inputs[1] != spread) return false;
    for (const char* name : {"stride", "dilation"}) {
      if (!AllEqual(node.attrs, name, 1)) return false;
    }
    return std::get<std::vector<int64_t>>(node.attrs.at("padding")) ==
               std::get<std::vector<int64_t>>(chain.conv->attrs.at("padding")) &&
           std::get<int64_t>(node.attrs.at("groups")) == 1 &&
           graph_.type(node.outputs[0]).dims == graph_.type(chain.conv->inputs[1]).dims;
  }

  void Take(const Chain& chain, const std::vector<Backward>& gradients) {
    gone_[IdOf(*chain.conv)] = true;
    if (chain.relu != nullptr) gone_[IdOf(*chain.relu)] = true;
    chain_of_[IdOf(*chain.pool)] = static_cast<int32_t>(chains_.size());
    chains_.push_back(chain);
    for (const Backward& backward : gradients) {
      if (!backward.whole) continue;
      gone_[IdOf(*backward.pool_grad)] = true;
      if (backward.mask != nullptr && uses_.IsReadOnce(backward.mask->outputs[0]))
        gone_[IdOf(*backward.mask)] = true;
      for (const NodeId user : uses_.ReadersOf(backward.pool_grad->outputs[0]))
        backward_of_[static_cast<size_t>(user)] = static_cast<int32_t>(gradients_.size());
      gradients_.push_back(backward);
    }
  }

  Status Visit(const Node& node) {
    const size_t id = IdOf(node);
    if (chain_of_[id] >= 0) return EmitForward(chains_[static_cast<size_t>(chain_of_[id])]);
    if (backward_of_[id] >= 0)
      return EmitBackward(gradients_[static_cast<size_t>(backward_of_[id])], node);
    return gone_[id] ? Status() : rewriter_.Copy(node);
  }

  Status EmitForward(const Chain& chain) {
    const Node& conv = *chain.conv;
    return rewriter_.Emit(*FindOp("conv_pool"), rewriter_.Map(conv.inputs), AttrsOf(chain),
                          chain.pool->outputs, conv.location);
  }

  // The mask is not needed: a place that relu cut off is no tap.
  Status EmitBackward(const Backward& found, const Node& node) {
    const ValueId dy = found.mask != nullptr ? found.mask->inputs[0] : found.pool_grad->inputs[1];
    return rewriter_.Emit(*FindOp("conv_pool_grad_weight"),
                          rewriter_.Map({node.inputs[0], found.pool_grad->inputs[0], dy}),
                          {{"padding", node.attrs.at("padding")},
                           {"weight_dims", node.attrs.at("weight_dims")},
                           {"bias", node.attrs.at("bias")},
                           {"keep_f32", node.attrs.at("keep_f32")}},
                          node.outputs, node.location);
  }

  const Graph& graph_;
  const RewriteRules& rules_;
  const GraphUses uses_;
  std::vector<Chain> chains_;
  std::vector<Backward> gradients_;   // those that are `whole`
  std::vector<bool> gone_;            // by node: another node replaces it
  std::vector<int32_t> chain_of_;     // by node: the chain that ends with this pool, or -1
  std::vector<int32_t> backward_of_;  // by node: the Backward of this conv_grad_weight, or -1
  GraphRewriter rewriter_;
};

}  // namespace

Result<Graph> FuseConvPool(Graph graph, const RewriteRules& rules) {
  Fuser fuser(graph, rules);
  if (!fuser.FindChains()) return graph;
  return fuser.Run();
}

}  // namespace ridge

// The gain is memory traffic: a normalized tensor is written once, with all its steps applied, and
// the masked gradient not at all.
//
// The normalized tensor must have a single reader.  A training norm keeps its position, since
// others read its mean and variance, so it adds only operands that are computed before it; of two
// norms that meet in a sum (a projected shortcut) the later one takes it.  The inference form has
// no other results and moves to the end of its chain.
#include "ridge/lower/fuse_norm.h"

#include <algorithm>

#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

bool IsNorm(const Node& node) {
  return node.op->name == "batch_norm" || node.op->name == "batch_norm_inference";
}

struct Chain {
  NodeId norm = -1;
  std::vector<NodeId> steps;
  ValueId extra = kNoValue;
};

class NormFuser {
 public:
  NormFuser(const Graph& graph, const RewriteRules& rules)
      : graph_(graph),
        rules_(rules),
        uses_(graph),
        taken_(graph.nodes().size(), false),
        starts_(graph.nodes().size(), -1),
        ends_(graph.nodes().size(), -1),
        masks_(graph.nodes().size(), false),
        rewriter_(graph) {}

  bool Find() {
    for (size_t n = 0; n < graph_.nodes().size(); ++n) FindMask(static_cast<NodeId>(n));
    // In reverse order: of two norms that meet, the later one takes the sum.
    for (auto n = static_cast<NodeId>(graph_.nodes().size()); n-- > 0;) FollowChain(n);
    return any_mask_ || !chains_.empty();
  }

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) { return Visit(node); }));
    RIDGE_ASSIGN_OR_RETURN(Graph graph, rewriter_.Finish());
    // Drops a relu that only its mask has read.
    return any_mask_ ? RemoveDead(std::move(graph)) : Result<Graph>(std::move(graph));
  }

 private:
  // What a convolution of 16 bits writes will be stored in 16 bits too (reduced_storage.h).
  DType StoredType(ValueId id) const {
    const Node* producer = graph_.producer(id);
    const bool conv = producer != nullptr && producer->op->cost_class == CostClass::kConv;
    return graph_.type(conv ? producer->inputs[0] : id).dtype;
  }

  // `call` is that of the norm, or of its gradient, with what it is to take over.
  bool Fuses(const Node& node, OpCall call) const {
    call.inputs[0].dtype = StoredType(node.inputs[0]);
    return rules_.Fuses(*node.op, call);
  }

  static std::string_view EpilogueOf(const Node& node) {
    return std::get<std::string>(node.attrs.at("epilogue"));
  }

  // --- masks ---------------------------------------------------------------------------------

  // Finds relu_grad whose only reader is the gradient of the norm before relu.
  void FindMask(NodeId n) {
    const Node& grad = graph_.node(n);
    if (grad.op->name != "batch_norm_grad") return;
    const Node* mask = graph_.producer(grad.inputs[4], "relu_grad");
    if (mask == nullptr || !uses_.IsReadOnce(grad.inputs[4])) return;
    const Node* relu = graph_.producer(mask->inputs[1], "relu");
    if (relu == nullptr) return;
    const Node* norm = graph_.producer(relu->inputs[0]);
    if (norm == nullptr || !IsNormOf(*norm, relu->inputs[0], grad)) return;
    if (graph_.type(mask->inputs[0]) != graph_.type(grad.inputs[4])) return;
    OpCall call = graph_.Call(grad);
    call.inputs.resize(6, OpCall::Absent());
    call.inputs[5] = graph_.type(norm->inputs[2]);
    call.attrs["relu"] = int64_t{1};
    if (!Fuses(grad, std::move(call))) return;
    masks_[static_cast<size_t>(n)] = any_mask_ = true;
    taken_[static_cast<size_t>(graph_.IdOf(*mask))] = true;
  }

  // Whether y is the norm whose gradient this is.
  static bool IsNormOf(const Node& norm, ValueId y, const Node& grad) {
    if (!IsNorm(norm) || norm.outputs[0] != y || !EpilogueOf(norm).empty()) return false;
    const bool training = norm.op->name == "batch_norm";
    const ValueId mean = training ? norm.outputs[1] : norm.inputs[3];
    const ValueId var = training ? norm.outputs[2] : norm.inputs[4];
    return norm.inputs[0] == grad.inputs[0] && norm.inputs[1] == grad.inputs[1] &&
           mean == grad.inputs[2] && var == grad.inputs[3] &&
           std::get<double>(norm.attrs.at("epsilon")) == std::get<double>(grad.attrs.at("epsilon"));
  }

  Status EmitMasked(const Node& grad) {
    const Node& mask = *graph_.producer(grad.inputs[4]);
    const Node& norm = *graph_.producer(graph_.producer(mask.inputs[1])->inputs[0]);
    std::vector<ValueId> inputs = grad.inputs;
    inputs[4] = mask.inputs[0];
    inputs.resize(6, kNoValue);
    inputs[5] = norm.inputs[2];
    AttrMap attrs = grad.attrs;
    attrs["relu"] = int64_t{1};
    return rewriter_.Emit(*grad.op, rewriter_.Map(inputs), std::move(attrs), grad.outputs,
                          grad.location);
  }

  // --- epilogues -----------------------------------------------------------------------------

  void FollowChain(NodeId n) {
    const Node& norm = graph_.node(n);
    if (!IsNorm(norm) || !EpilogueOf(norm).empty()) return;
    Chain chain{n, {}, kNoValue};
    ValueId value = norm.outputs[0];
    if (const NodeId add = OnlyReader(value, "add"); add >= 0 && MayAdd(norm, n, add, value)) {
      chain.steps.push_back(add);
      chain.extra = Other(graph_.node(add), value);
      value = graph_.node(add).outputs[0];
    }
    if (const NodeId relu = OnlyReader(value, "relu"); relu >= 0) chain.steps.push_back(relu);
    if (chain.steps.empty() || !Fuses(norm, CallOf(chain))) return;
    for (NodeId step : chain.steps) taken_[static_cast<size_t>(step)] = true;
    taken_[static_cast<size_t>(n)] = true;
    const bool stays = norm.outputs.size() > 1;
    (stays ? starts_[static_cast<size_t>(n)] : ends_[static_cast<size_t>(chain.steps.back())]) =
        static_cast<int32_t>(chains_.size());
    chains_.push_back(std::move(chain));
  }

  NodeId OnlyReader(ValueId value, std::string_view op) const {
    const NodeId reader = uses_.OnlyReader(value);
    if (reader < 0 || taken_[static_cast<size_t>(reader)]) return -1;
    return graph_.node(reader).op->name == op ? reader : -1;
  }

  static ValueId Other(const Node& add, ValueId value) {
    return add.inputs[0] == value ? add.inputs[1] : add.inputs[0];
  }

  bool MayAdd(const Node& norm, NodeId n, NodeId add, ValueId value) const {
    const ValueId extra = Other(graph_.node(add), value);
    return graph_.type(extra) == graph_.type(value) &&
           (norm.outputs.size() == 1 || graph_.value(extra).producer < n);
  }

  std::string StepsOf(const Chain& chain) const {
    std::string epilogue;
    for (NodeId step : chain.steps)
      epilogue += (epilogue.empty() ? "" : ",") + graph_.node(step).op->name;
    return epilogue;
  }

  OpCall CallOf(const Chain& chain) const {
    OpCall call = graph_.Call(graph_.node(chain.norm));
    call.attrs["epilogue"] = StepsOf(chain);
    if (chain.extra != kNoValue) call.inputs.push_back(graph_.type(chain.extra));
    return call;
  }

  Status EmitChain(const Chain& chain) {
    const Node& norm = graph_.node(chain.norm);
    std::vector<ValueId> inputs = norm.inputs;
    AttrMap attrs = norm.attrs;
    attrs["epilogue"] = StepsOf(chain);
    if (chain.extra != kNoValue) inputs.push_back(chain.extra);
    std::vector<ValueId> results = norm.outputs;
    results[0] = graph_.node(chain.steps.back()).outputs[0];
    return rewriter_.Emit(*norm.op, rewriter_.Map(inputs), std::move(attrs), results,
                          norm.location);
  }

  Status Visit(const Node& node) {
    const auto n = static_cast<size_t>(graph_.IdOf(node));
    if (starts_[n] >= 0) return EmitChain(chains_[static_cast<size_t>(starts_[n])]);
    if (ends_[n] >= 0) return EmitChain(chains_[static_cast<size_t>(ends_[n])]);
    if (taken_[n]) return Status();
    return masks_[n] ? EmitMasked(node) : rewriter_.Copy(node);
  }

  const Graph& graph_;
  const RewriteRules& rules_;
  const GraphUses uses_;
  std::vector<bool> taken_;             // by node: part of another
  std::vector<int32_t> starts_, ends_;  // by node: the chain that is emitted here, or -1
  std::vector<bool> masks_;             // by node: a gradient that makes its own mask
  bool any_mask_ = false;
  std::vector<Chain> chains_;
  GraphRewriter rewriter_;
};

}  // namespace

Result<Graph> FuseNorms(Graph graph, const RewriteRules& rules) {
  const bool any = std::any_of(graph.nodes().begin(), graph.nodes().end(), IsNorm);
  if (!any) return graph;
  NormFuser fuser(graph, rules);
  if (!fuser.Find()) return graph;
  return fuser.Run();
}

}  // namespace ridge

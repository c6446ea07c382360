// Nodes that follow from the tokens are copied; where one reads a result that does not, that result
// becomes a state.
#include "ridge/learn/cached_step.h"

#include <fmt/format.h>

#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/reach.h"

namespace ridge {
namespace {

class Stepper {
 public:
  Stepper(const Graph& from, ValueId tokens, int64_t length)
      : from_(from), length_(length), moving_(Descendants(from, {tokens})), rewriter_(from) {}

  Result<Graph> Run() {
    for (const Node& node : from_.nodes()) {
      if (!Moves(node.outputs[0])) continue;
      for (const ValueId id : node.inputs) KeepOnce(id);
      RIDGE_RETURN_IF_ERROR(IsCached(node) ? VisitAttention(node) : rewriter_.Copy(node));
    }
    RIDGE_ASSIGN_OR_RETURN(Graph step, rewriter_.Finish());
    for (const std::string& name : fresh_) step.AddOutput("fresh." + name, step.FindValue(name));
    return step;
  }

 private:
  bool Moves(ValueId id) const { return id != kNoValue && moving_[static_cast<size_t>(id)]; }

  bool IsCached(const Node& node) const {
    return node.op->name == "attention" && node.attrs.integer("causal") == 1 &&
           Moves(node.inputs[1]);
  }

  ValueId AddState(const std::string& name, TensorType type) {
    ValueInfo state;
    state.name = rewriter_.FreshName(name);
    state.type = std::move(type);
    state.kind = ValueKind::kState;
    state.role = ValueRole::kStatistic;
    return rewriter_.AddLeaf(std::move(state));
  }

  // A result that is the same for all tokens.
  void KeepOnce(ValueId id) {
    if (id == kNoValue || Moves(id) || rewriter_.Map(id) != kNoValue) return;
    if (from_.value(id).kind != ValueKind::kResult) return;
    rewriter_.Set(id, AddState(fmt::format("once.{}", once_++), from_.type(id)));
  }

  Status Refuse(const Node& node, const std::string& why) const {
    return Status(ErrorCode::kUnsupported, fmt::format("{}: can't be run token by token: {} {}",
                                                       from_.name, from_.Where(node), why));
  }

  // All cached tokens come before this one, so none is hidden.
  Status VisitAttention(const Node& node) {
    if (node.inputs.size() > 3 && node.inputs[3] != kNoValue) return Refuse(node, "has a mask");
    if (node.attrs.text("layout") != "heads")
      return Refuse(node, "has packed queries, keys and values");
    const std::string name = fmt::format("cache.{}", attentions_++);
    std::vector<ValueId> inputs = {rewriter_.Use(node.inputs[0]),
                                   Cached(node.inputs[1], name + ".k"),
                                   Cached(node.inputs[2], name + ".v")};
    AttrMap attrs = node.attrs;
    attrs["causal"] = int64_t{0};
    return rewriter_.Emit(*node.op, std::move(inputs), std::move(attrs), node.outputs,
                          node.location);
  }

  ValueId Cached(ValueId row, const std::string& name) {
    fresh_.push_back(from_.value(row).name);
    TensorType type = from_.type(row);
    type.dims[2] = length_;
    return AddState(name, std::move(type));
  }

  const Graph& from_;
  const int64_t length_;
  const ValueSet moving_;
  GraphRewriter rewriter_;
  int once_ = 0, attentions_ = 0;
  std::vector<std::string> fresh_;
};

}  // namespace

Result<Graph> CachedStep(const Graph& inference, const std::string& tokens,
                         const std::string& logits, int64_t length) {
  const auto refuse = [&](const std::string& what) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: is no language model: {}", inference.name, what));
  };
  const ValueId input = inference.FindValue(tokens), output = inference.FindOutput(logits);
  if (input == kNoValue || output == kNoValue)
    return refuse(fmt::format("it lacks the input '{}' or the output '{}'", tokens, logits));
  if (!Descendants(inference, {input})[static_cast<size_t>(output)])
    return refuse(fmt::format("'{}' does not depend on '{}'", logits, tokens));
  Graph wanted = inference;
  wanted.ClearOutputs();
  wanted.AddOutput(logits, output);
  RIDGE_ASSIGN_OR_RETURN(const Graph needed, KeepNeeded(wanted));
  return Stepper(needed, needed.FindValue(tokens), length).Run();
}

}  // namespace ridge

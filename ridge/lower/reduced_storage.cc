// We come from lower/fuse.cc.  Known here: a whole graph whose products read 16 bits.  Goes
// on to plan/.
//
// A pointwise node becomes one whose expression begins with casts to f32 and ends with casts to the
// 16-bit type; another node takes tensors of 16 bits as they are, or a cast in front of it.
#include "ridge/lower/reduced_storage.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "ridge/graph/expression.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"
#include "ridge/lower/storage_search.h"

namespace ridge {
namespace {

bool IsCastTo(const ExpressionStep& step, DType dtype) {
  return step.op->name == "cast" && std::get<std::string>(step.attrs.at("to")) == DTypeName(dtype);
}

// A pointwise node's expression on tensors of 16 bits.
class ReducedExpression {
 public:
  ReducedExpression(const Node& node, DType reduced, const std::vector<bool>& is_reduced,
                    const GraphRewriter& rewriter)
      : node_(node), reduced_(reduced), is_reduced_(is_reduced), rewriter_(rewriter) {}

  void Rewrite(const Expression& old) {
    for (const ExpressionStep& step : old.steps) AddStep(step);
    for (size_t o = 0; o < old.outputs.size(); ++o) {
      ExpressionOperand from = now_[static_cast<size_t>(old.outputs[o])];
      if (IsReduced(node_.outputs[o])) from = Cast(from, reduced_);
      sources_.push_back(from);
      if (from.is_step && !IsOutput(from.index)) made_.outputs.push_back(from.index);
    }
    made_.inputs = inputs_.size();
  }

  const Expression& made() const { return made_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }  // of the new graph
  // Output o of the node is this input or step.
  const ExpressionOperand& source(size_t o) const { return sources_[o]; }
  // REQUIRES: source(o) is a step.
  size_t OutputOf(size_t o) const {
    const auto at = std::find(made_.outputs.begin(), made_.outputs.end(), sources_[o].index);
    return static_cast<size_t>(at - made_.outputs.begin());
  }

 private:
  bool IsReduced(ValueId id) const { return is_reduced_[static_cast<size_t>(id)]; }
  bool IsOutput(int32_t step) const {
    return std::find(made_.outputs.begin(), made_.outputs.end(), step) != made_.outputs.end();
  }
  ValueId InputOf(const ExpressionOperand& old) const {
    return node_.inputs[static_cast<size_t>(old.index)];
  }

  void AddStep(const ExpressionStep& old) {
    const bool narrowing = IsCastTo(old, reduced_) && !old.operands[0].is_step;
    if (narrowing && IsReduced(InputOf(old.operands[0]))) {  // it has 16 bits already
      now_.push_back(Input(InputOf(old.operands[0])));
      return;
    }
    ExpressionStep step{old.op, old.attrs, {}};
    for (const ExpressionOperand& operand : old.operands) step.operands.push_back(Operand(operand));
    made_.steps.push_back(std::move(step));
    now_.push_back({true, static_cast<int32_t>(made_.steps.size()) - 1});
  }

  ExpressionOperand Operand(const ExpressionOperand& old) {
    if (old.is_step) return now_[static_cast<size_t>(old.index)];
    const ValueId id = InputOf(old);
    return IsReduced(id) ? Cast(Input(id), DType::kF32) : Input(id);
  }

  ExpressionOperand Input(ValueId old) {
    const ValueId id = rewriter_.Map(old);
    const auto at = std::find(inputs_.begin(), inputs_.end(), id);
    if (at == inputs_.end()) inputs_.push_back(id);
    const auto index = std::find(inputs_.begin(), inputs_.end(), id) - inputs_.begin();
    return {false, static_cast<int32_t>(index)};
  }

  // The step that casts `from`, made when it is not there.
  ExpressionOperand Cast(const ExpressionOperand& from, DType to) {
    for (size_t s = 0; s < made_.steps.size(); ++s) {
      if (IsCastTo(made_.steps[s], to) && made_.steps[s].operands[0] == from)
        return {true, static_cast<int32_t>(s)};
    }
    static const OpDef& cast = *FindOp("cast");
    ExpressionStep step{&cast, cast.attr_defaults, {from}};
    step.attrs["to"] = std::string(DTypeName(to));
    made_.steps.push_back(std::move(step));
    return {true, static_cast<int32_t>(made_.steps.size()) - 1};
  }

  const Node& node_;
  const DType reduced_;
  const std::vector<bool>& is_reduced_;
  const GraphRewriter& rewriter_;
  Expression made_;
  std::vector<ValueId> inputs_;
  std::vector<ExpressionOperand> now_;      // by old step
  std::vector<ExpressionOperand> sources_;  // by old output
};

class StorageRewriter {
 public:
  // Where casts for readers of f32 stand: in front of each, since a copy for all of them would live
  // as long as the f32 value did, or one behind the producer, so that readers that wait for nothing
  // else, such as updates, run at once.
  enum class Casts { kInFront, kBehind };

  StorageRewriter(const Graph& graph, DType reduced, StorageChoice choice, Casts casts)
      : graph_(graph),
        uses_(graph),
        reduced_(reduced),
        choice_(std::move(choice)),
        casts_(casts),
        rewriter_(graph) {}

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) { return Visit(node); }));
    for (const GraphOutput& output : graph_.outputs())
      RIDGE_RETURN_IF_ERROR(WidenResult(output.value));
    for (const GraphUpdate& update : graph_.updates())
      RIDGE_RETURN_IF_ERROR(WidenResult(update.value));
    return rewriter_.Finish();
  }

 private:
  bool IsReduced(ValueId id) const {
    return id != kNoValue && choice_.values[static_cast<size_t>(id)];
  }

  Status Visit(const Node& node) {
    const auto reduced = [this](ValueId id) { return IsReduced(id); };
    const bool touched = std::any_of(node.inputs.begin(), node.inputs.end(), reduced) ||
                         std::any_of(node.outputs.begin(), node.outputs.end(), reduced);
    if (!touched) return rewriter_.Copy(node);
    return TakesCasts(node) ? EmitPointwise(node) : EmitNode(node);
  }

  Status EmitPointwise(const Node& node) {
    RIDGE_ASSIGN_OR_RETURN(const Expression old, ExpressionOf(*node.op, graph_.Call(node)));
    ReducedExpression expression(node, reduced_, choice_.values, rewriter_);
    expression.Rewrite(old);
    const Expression& made = expression.made();
    std::vector<ValueId> results(made.outputs.size(), kNoValue);  // the first that is this output
    for (size_t o = node.outputs.size(); o-- > 0;) {
      if (expression.source(o).is_step) results[expression.OutputOf(o)] = node.outputs[o];
    }
    if (!results.empty()) {
      RIDGE_RETURN_IF_ERROR(rewriter_.Emit(*FindOp("fused"), expression.inputs(),
                                           {{"expr", PrintExpression(made)}}, results,
                                           node.location));
    }
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      const ExpressionOperand& from = expression.source(o);
      const ValueId now = from.is_step ? rewriter_.Map(results[expression.OutputOf(o)])
                                       : expression.inputs()[static_cast<size_t>(from.index)];
      if (rewriter_.Map(node.outputs[o]) == kNoValue) rewriter_.Set(node.outputs[o], now);
    }
    return Status();
  }

  Status EmitNode(const Node& node) {
    const NodeId id = graph_.IdOf(node);
    const std::vector<bool>& reads = choice_.reads[static_cast<size_t>(id)];
    std::vector<ValueId> inputs = rewriter_.Map(node.inputs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!IsReduced(node.inputs[i]) || reads[i]) continue;
      RIDGE_ASSIGN_OR_RETURN(inputs[i], Widen(node.inputs[i], node));
    }
    AttrMap attrs = node.attrs;
    if (attrs.contains("out_dtype")) {
      const DType out = IsReduced(node.outputs[0]) ? reduced_ : graph_.type(node.outputs[0]).dtype;
      attrs["out_dtype"] = std::string(DTypeName(out));
    }
    RIDGE_RETURN_IF_ERROR(
        rewriter_.Emit(*node.op, std::move(inputs), std::move(attrs), node.outputs, node.location));
    if (casts_ == Casts::kInFront) return Status();
    for (const ValueId id : node.outputs) {
      if (!IsReduced(id) || !NeedsF32(id)) continue;
      RIDGE_ASSIGN_OR_RETURN(wide_[id], Widen(id, node));
    }
    return Status();
  }

  // By a reader that takes no casts, or because it leaves the graph.
  bool NeedsF32(ValueId id) const {
    const std::span<const NodeId> readers = uses_.ReadersOf(id);
    const auto of = [id](const auto& result) { return result.value == id; };
    return std::any_of(readers.begin(), readers.end(),
                       [&](NodeId n) { return !TakesCasts(graph_.node(n)); }) ||
           std::any_of(graph_.outputs().begin(), graph_.outputs().end(), of) ||
           std::any_of(graph_.updates().begin(), graph_.updates().end(), of);
  }

  // What leaves the graph keeps its type.
  Status WidenResult(ValueId id) {
    if (!IsReduced(id)) return Status();
    RIDGE_ASSIGN_OR_RETURN(const ValueId wide, Widen(id, *graph_.producer(id)));
    wide_[id] = wide;
    rewriter_.Set(id, wide);
    return Status();
  }

  Result<ValueId> Widen(ValueId id, const Node& reader) {
    if (const auto known = wide_.find(id); known != wide_.end()) return known->second;
    static const OpDef& cast = *FindOp("cast");
    AttrMap attrs = cast.attr_defaults;
    attrs["to"] = std::string(DTypeName(DType::kF32));
    const std::string name = rewriter_.FreshName(graph_.value(id).name + ".f32");
    return rewriter_.AddNamedNode(cast, {rewriter_.Map(id)}, std::move(attrs), name,
                                  reader.location);
  }

  const Graph& graph_;
  const GraphUses uses_;
  const DType reduced_;
  const StorageChoice choice_;
  const Casts casts_;
  std::map<ValueId, ValueId> wide_;  // f32 values of the new graph, by old value
  GraphRewriter rewriter_;
};

// Whether the node is a convolution of `reduced` operands that could give `reduced` results.
bool GivesWideSums(const Graph& graph, const Node& node, DType reduced) {
  if (node.op->cost_class != CostClass::kConv || !node.attrs.contains("out_dtype")) return false;
  if (graph.type(node.inputs[0]).dtype != reduced) return false;
  if (graph.type(node.outputs[0]).dtype != DType::kF32) return false;
  OpCall call = graph.Call(node);
  call.attrs["out_dtype"] = std::string(DTypeName(reduced));
  return InferCall(*node.op, call).ok();
}

}  // namespace

Result<Graph> AutocastActivations(Graph graph, DType reduced, KernelQuery& kernels) {
  StorageChoice choice = ChooseReducedStorage(graph, reduced, kernels);
  if (std::find(choice.values.begin(), choice.values.end(), true) == choice.values.end())
    return graph;
  return StorageRewriter(graph, reduced, std::move(choice), StorageRewriter::Casts::kInFront).Run();
}

Result<Graph> NarrowConvolutions(Graph graph, DType reduced, const RewriteRules& rules) {
  StorageChoice choice{std::vector<bool>(graph.values().size(), false), {}};
  for (const Node& node : graph.nodes()) {
    choice.reads.emplace_back(node.inputs.size(), false);
    if (rules.GivesF32Sums(*node.op) || !GivesWideSums(graph, node, reduced)) continue;
    for (const ValueId id : node.outputs) choice.values[static_cast<size_t>(id)] = true;
  }
  if (std::find(choice.values.begin(), choice.values.end(), true) == choice.values.end())
    return graph;
  return StorageRewriter(graph, reduced, std::move(choice), StorageRewriter::Casts::kBehind).Run();
}

}  // namespace ridge

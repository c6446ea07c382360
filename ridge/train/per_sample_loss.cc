#include "ridge/train/per_sample_loss.h"

#include <fmt/format.h>

#include <numeric>

namespace ridge {
namespace {

// Which values depend on an input.
std::vector<bool> Varying(const Graph& graph) {
  std::vector<bool> varying(graph.values().size(), false);
  for (ValueId id : graph.ValuesOfKind(ValueKind::kInput)) varying[static_cast<size_t>(id)] = true;
  for (const Node& node : graph.nodes()) {
    bool any = false;
    for (ValueId id : node.inputs)
      any = any || (id != kNoValue && varying[static_cast<size_t>(id)]);
    for (ValueId id : node.outputs) varying[static_cast<size_t>(id)] = any;
  }
  return varying;
}

class Splitter {
 public:
  Splitter(GraphBuilder& b, int64_t batch) : b_(b), batch_(batch), varying_(Varying(b.graph())) {}

  // The division by something that varies which `loss` is; -1 when it is none.
  static NodeId FindQuotient(const Graph& graph, const std::vector<bool>& varying, ValueId loss) {
    NodeId at = graph.value(loss).producer;
    while (at >= 0) {
      const Node& node = graph.node(at);
      if (node.op->name == "div" && varying[static_cast<size_t>(node.inputs[1])]) return at;
      if (node.op->name != "reshape" && node.op->name != "cast") return -1;
      at = graph.value(node.inputs[0]).producer;
    }
    return -1;
  }
  NodeId Quotient(ValueId loss) const { return FindQuotient(b_.graph(), varying_, loss); }

  // maximum(b, c): what keeps a batch without weight from dividing by 0 does not belong to the sum
  // over all batches.
  Result<Value> SplitWeight(Value v) {
    const NodeId producer = b_.graph().value(v.id).producer;
    if (producer >= 0 && b_.graph().node(producer).op->name == "maximum") {
      const Node node = b_.graph().node(producer);
      if (!Varies(node.inputs[1])) return SplitWeight({node.inputs[0]});
      if (!Varies(node.inputs[0])) return SplitWeight({node.inputs[1]});
    }
    return Split(v);
  }

  Result<Value> Split(Value v) {
    if (!varying_[static_cast<size_t>(v.id)]) return Spread(v);
    const Node node = b_.graph().node(b_.graph().value(v.id).producer);  // a copy: nodes move
    const std::string& op = node.op->name;
    if (op == "reduce_mean" || op == "reduce_sum") return SplitReduction(node);
    if (op == "add" || op == "sub") return SplitSum(node);
    if (op == "mul" || op == "div") return SplitScaled(node);
    if (op == "neg" || op == "reshape" || op == "cast") return SplitUnary(node);
    return Refuse(node);
  }

 private:
  bool Varies(ValueId id) const { return id != kNoValue && varying_[static_cast<size_t>(id)]; }

  Value Spread(Value v) { return b_.Expand(b_.Reshape(v, {1}), {batch_}); }

  // mean(x) = mean over samples of mean(x[i]); sum(x) = mean over samples of batch * sum(x[i]).
  Result<Value> SplitReduction(const Node& node) {
    const Value x = {node.inputs[0]};
    const Dims dims = b_.dims(x);
    const bool over_all = b_.type({node.outputs[0]}).elements() == 1;
    if (dims.empty() || dims[0] != batch_ || !over_all) return Refuse(node);
    std::vector<int64_t> rest(dims.size() - 1);
    std::iota(rest.begin(), rest.end(), int64_t{1});
    Value each = x;
    if (!rest.empty())
      each = b_.Op(node.op->name.c_str(), {x}, {{"axes", rest}, {"keep_dims", int64_t{0}}});
    if (node.op->name == "reduce_sum") each = b_.MulScalar(each, static_cast<double>(batch_));
    return each;
  }

  Result<Value> SplitSum(const Node& node) {
    RIDGE_ASSIGN_OR_RETURN(const Value left, Split({node.inputs[0]}));
    RIDGE_ASSIGN_OR_RETURN(const Value right, Split({node.inputs[1]}));
    return b_.Op(node.op->name.c_str(), {left, right});
  }

  Result<Value> SplitScaled(const Node& node) {
    const bool left_varies = Varies(node.inputs[0]), right_varies = Varies(node.inputs[1]);
    if (left_varies && right_varies) return Refuse(node);
    if (node.op->name == "div" && right_varies) return Refuse(node);
    RIDGE_ASSIGN_OR_RETURN(const Value left, Split({node.inputs[0]}));
    RIDGE_ASSIGN_OR_RETURN(const Value right, Split({node.inputs[1]}));
    return b_.Op(node.op->name.c_str(), {left, right});
  }

  Result<Value> SplitUnary(const Node& node) {
    RIDGE_ASSIGN_OR_RETURN(const Value inner, Split({node.inputs[0]}));
    if (node.op->name == "reshape") return inner;
    return b_.Op(node.op->name.c_str(), {inner}, node.attrs);
  }

  Status Refuse(const Node& node) const {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{}: the loss can't be told apart by sample, which evaluation needs. "
                              "hint: make it reduce_mean of values whose first dimension is the "
                              "batch ({}), plus terms without inputs",
                              b_.graph().Where(node), batch_));
  }

  GraphBuilder& b_;
  int64_t batch_;
  const std::vector<bool> varying_;
};

}  // namespace

Result<SampleLosses> PerSampleLoss(GraphBuilder& b, Value loss, int64_t batch) {
  SampleLosses samples;
  Splitter splitter(b, batch);
  const NodeId quotient = splitter.Quotient(loss.id);
  if (quotient < 0) {
    RIDGE_ASSIGN_OR_RETURN(samples.loss, splitter.Split(loss));
  } else {
    const Node node = b.graph().node(quotient);  // a copy: nodes move
    RIDGE_ASSIGN_OR_RETURN(samples.loss, splitter.Split({node.inputs[0]}));
    RIDGE_ASSIGN_OR_RETURN(samples.weight, splitter.SplitWeight({node.inputs[1]}));
  }
  RIDGE_RETURN_IF_ERROR(b.status());
  return samples;
}

bool IsWeightedMean(const Graph& graph, ValueId loss) {
  return Splitter::FindQuotient(graph, Varying(graph), loss) >= 0;
}

}  // namespace ridge

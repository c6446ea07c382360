#include "ridge/learn/per_sample_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ridge/graph/axes.h"
#include "ridge/graph/reach.h"

namespace ridge {
namespace {

// The values that depend on an input.
ValueSet Varying(const Graph& graph) {
  return Descendants(graph, graph.ValuesOfKind(ValueKind::kInput));
}

class Splitter {
 public:
  Splitter(GraphBuilder& b, int64_t batch) : b_(b), batch_(batch), varying_(Varying(b.graph())) {}

  // The division that computes `loss`, if its divisor depends on an input; else -1.
  static NodeId FindQuotient(const Graph& graph, const ValueSet& varying, ValueId loss) {
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

  // Drops c of maximum(b, c): the guard against division by 0 must not enter the sum over batches.
  Result<Value> SplitWeight(Value v) {
    if (const Node* guard = b_.graph().producer(v.id, "maximum")) {
      if (!Varies(guard->inputs[1])) return SplitWeight(b_.At(guard->inputs[0]));
      if (!Varies(guard->inputs[0])) return SplitWeight(b_.At(guard->inputs[1]));
    }
    return Split(v);
  }

  Result<Value> Split(Value v) {
    if (!varying_[static_cast<size_t>(v.id)]) return Spread(v);
    const Node& node = *b_.graph().producer(v.id);
    const std::string& op = node.op->name;
    if (op == "reduce_mean" || op == "reduce_sum") return SplitReduction(node);
    if (op == "add" || op == "sub") return SplitSum(node);
    if (op == "mul" || op == "div") return SplitScaled(node);
    if (op == "neg" || op == "reshape" || op == "cast") return SplitUnary(node);
    return Refuse(node);
  }

 private:
  bool Varies(ValueId id) const { return id != kNoValue && varying_[static_cast<size_t>(id)]; }

  Value Spread(Value v) { return Expand(Reshape(v, {1}), {batch_}); }

  // mean(x) = mean over samples of mean(x[i]); sum(x) = mean over samples of batch * sum(x[i]).
  Result<Value> SplitReduction(const Node& node) {
    Value x = b_.At(node.inputs[0]);
    const bool over_all = b_.graph().type(node.outputs[0]).elements() == 1;
    if (!over_all || !RowsGoBySample(x.id)) return Refuse(node);
    if (x.dims()[0] != batch_) x = Reshape(x, {batch_, x.type().elements() / batch_});
    const Dims dims = x.dims();
    std::vector<int64_t> rest(dims.size() - 1);
    std::iota(rest.begin(), rest.end(), int64_t{1});
    Value each = x;
    if (!rest.empty()) each = Op(node.op->name.c_str(), {x}, {{"axes", rest}, {"keep_dims", 0}});
    if (node.op->name == "reduce_sum") each = each * static_cast<double>(batch_);
    return each;
  }

  Result<Value> SplitSum(const Node& node) {
    RIDGE_ASSIGN_OR_RETURN(const Value left, Split(b_.At(node.inputs[0])));
    RIDGE_ASSIGN_OR_RETURN(const Value right, Split(b_.At(node.inputs[1])));
    return Op(node.op->name.c_str(), {left, right});
  }

  Result<Value> SplitScaled(const Node& node) {
    const bool left_varies = Varies(node.inputs[0]), right_varies = Varies(node.inputs[1]);
    if (node.op->name == "div" && right_varies) return SplitQuotient(node);
    if (left_varies && right_varies) return Refuse(node);
    RIDGE_ASSIGN_OR_RETURN(const Value left, Split(b_.At(node.inputs[0])));
    RIDGE_ASSIGN_OR_RETURN(const Value right, Split(b_.At(node.inputs[1])));
    return Op(node.op->name.c_str(), {left, right});
  }

  // A weighted mean as a term of a sum: each sample's contribution, over the batch's weight.
  Result<Value> SplitQuotient(const Node& node) {
    const Value weight = b_.At(node.inputs[1]);
    if (weight.type().elements() != 1) return Refuse(node);
    RIDGE_ASSIGN_OR_RETURN(const Value each, Split(b_.At(node.inputs[0])));
    return each / Reshape(weight, {1});
  }

  // Whether the first dimension is the batch, or rows [batch * T, ..] of a reshape that
  // concatenates samples, with only row-wise operators after it.
  bool RowsGoBySample(ValueId x) const {
    while (true) {
      const Dims& dims = b_.graph().type(x).dims;
      if (dims.empty() || batch_ < 1 || dims[0] < batch_ || dims[0] % batch_ != 0) return false;
      if (dims[0] == batch_) return true;
      const Node* node = b_.graph().producer(x);
      if (node == nullptr) return false;
      const ValueId longest = LongestInput(*node);
      if (!GoesByRow(*node, longest)) return false;
      x = longest;
    }
  }

  // Whether dimension 0 of the node's output and of this input are rows of the same samples.
  bool GoesByRow(const Node& node, ValueId input) const {
    const auto i = static_cast<size_t>(std::find(node.inputs.begin(), node.inputs.end(), input) -
                                       node.inputs.begin());
    const Axes axes = AxesOf(*node.op, b_.graph().Call(node));
    return std::any_of(axes.begin(), axes.end(), [i](const Factor& factor) {
      return factor.outputs[0] == 0 && factor.inputs[i] == 0;
    });
  }

  // The first varying operand with most elements: others of a pointwise node may be broadcast.
  ValueId LongestInput(const Node& node) const {
    ValueId longest = node.inputs[0];
    int64_t most = -1;
    for (const ValueId id : node.inputs) {
      if (!Varies(id) || b_.graph().type(id).elements() <= most) continue;
      most = b_.graph().type(id).elements();
      longest = id;
    }
    return longest;
  }

  Result<Value> SplitUnary(const Node& node) {
    RIDGE_ASSIGN_OR_RETURN(const Value inner, Split(b_.At(node.inputs[0])));
    if (node.op->name == "reshape") return inner;
    return Op(node.op->name.c_str(), {inner}, node.attrs);
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
  const ValueSet varying_;
};

}  // namespace

Result<SampleLosses> PerSampleLoss(GraphBuilder& b, Value loss, int64_t batch) {
  SampleLosses samples;
  Splitter splitter(b, batch);
  const NodeId quotient = splitter.Quotient(loss.id);
  if (quotient < 0) {
    RIDGE_ASSIGN_OR_RETURN(samples.loss, splitter.Split(loss));
  } else {
    const Node& node = b.graph().node(quotient);
    RIDGE_ASSIGN_OR_RETURN(samples.loss, splitter.Split(b.At(node.inputs[0])));
    RIDGE_ASSIGN_OR_RETURN(samples.weight, splitter.SplitWeight(b.At(node.inputs[1])));
  }
  RIDGE_RETURN_IF_ERROR(b.status());
  return samples;
}

bool IsWeightedMean(const Graph& graph, ValueId loss) {
  return Splitter::FindQuotient(graph, Varying(graph), loss) >= 0;
}

}  // namespace ridge

// logits = matmul(x, w) whose columns are no multiple of the device's ->
// matmul(x, pad(w), [0 .. 0, -inf .. -inf])
//
// A matrix whose rows are not aligned costs a GPU's product many times its time: that of the
// logits, and both of their gradients.  A class of logit -inf has probability 0 and gradient 0, so
// who reads nothing but softmax over the columns, or the largest, reads the same from more of them.
//
// Effective before differentiation: afterwards the gradient reads the logits too.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/core/rounding.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"
#include "ridge/lower/passes.h"

namespace ridge {
namespace {

constexpr int64_t kLeastColumns = 1024;
constexpr size_t kWeight = 1, kLogitsBias = 2;

class ProductPadder {
 public:
  ProductPadder(const Graph& graph, const ProductMultiple& multiple)
      : graph_(graph), multiple_(multiple), uses_(graph), rewriter_(graph) {}

  bool Any() const {
    return std::any_of(graph_.nodes().begin(), graph_.nodes().end(),
                       [this](const Node& node) { return Pads(node); });
  }

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk(
        [this](const Node& node) { return Pads(node) ? Pad(node) : rewriter_.Copy(node); }));
    return rewriter_.Finish();
  }

 private:
  bool Pads(const Node& node) const {
    if (node.op->name != "matmul" || node.inputs.size() > kLogitsBias + 1) return false;
    const TensorType& y = graph_.type(node.outputs[0]);
    const bool fits = y.dims.back() % multiple_.needed == 0;
    return !fits && y.dims.back() >= kLeastColumns && IsFloat(y.dtype) &&
           graph_.type(node.inputs[kWeight]).rank() == 2 && AreLogits(node.outputs[0]) &&
           std::get<std::string>(node.attrs.at("epilogue")).empty();
  }

  // Whether more columns of -inf change nothing for those who read it.
  bool AreLogits(ValueId y) const {
    const auto readers = uses_.ReadersOf(y);
    return uses_.OnlyNodesRead(y) && !readers.empty() &&
           std::all_of(readers.begin(), readers.end(),
                       [&](NodeId reader) { return IgnoresClasses(graph_.node(reader), y); });
  }

  bool IgnoresClasses(const Node& reader, ValueId y) const {
    if (reader.op->name == "softmax_cross_entropy") return reader.inputs[0] == y;
    if (reader.op->name != "argmax") return false;
    const int64_t axis = std::get<int64_t>(reader.attrs.at("axis"));
    return axis == -1 || axis == graph_.type(y).rank() - 1;
  }

  Status Pad(const Node& node) {
    const ValueId y = node.outputs[0];
    const int64_t columns = graph_.type(y).dims.back();
    const int64_t more = RoundUp(columns, multiple_.padded) - columns;
    const bool by_rows = std::get<int64_t>(node.attrs.at("transpose_b")) != 0;
    const std::string& name = graph_.value(y).name;
    RIDGE_ASSIGN_OR_RETURN(
        const ValueId weight,
        Padded(node.inputs[kWeight], by_rows ? Dims{more, 0} : Dims{0, more}, 0, name, node));
    RIDGE_ASSIGN_OR_RETURN(const ValueId bias, BiasOf(node, columns, more));
    RIDGE_ASSIGN_OR_RETURN(
        const ValueId padded,
        rewriter_.AddNamedNode(*node.op, {rewriter_.Use(node.inputs[0]), weight, bias}, node.attrs,
                               rewriter_.FreshName(name + kPaddedSuffix), node.location));
    rewriter_.Set(y, padded);
    return Status();
  }

  Result<ValueId> Padded(ValueId value, const Dims& after, double with, const std::string& name,
                         const Node& node) {
    static const OpDef& pad = *FindOp("pad");
    AttrMap attrs = pad.attr_defaults;
    attrs["before"] = std::vector<int64_t>(after.size(), 0);
    attrs["after"] = std::vector<int64_t>(after.begin(), after.end());
    attrs["value"] = with;
    const std::string wanted = name + "." + graph_.value(value).name + kPaddedSuffix;
    return rewriter_.AddNamedNode(pad, {rewriter_.Use(value)}, std::move(attrs),
                                  rewriter_.FreshName(wanted), node.location);
  }

  Result<ValueId> BiasOf(const Node& node, int64_t columns, int64_t more) {
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    const std::string& name = graph_.value(node.outputs[0]).name;
    if (node.inputs.size() > kLogitsBias && node.inputs[kLogitsBias] != kNoValue)
      return Padded(node.inputs[kLogitsBias], {more}, kNever, name, node);
    Tensor bias({graph_.type(node.outputs[0]).dtype, {columns + more}});
    const DType dtype = bias.type().dtype;
    for (int64_t i = columns; i < columns + more; ++i)
      StoreFromDouble(dtype, bias.mutable_data(), i, kNever);
    return rewriter_.AddConstant(rewriter_.FreshName(name + ".classes"), std::move(bias));
  }

  const Graph& graph_;
  const ProductMultiple multiple_;
  const GraphUses uses_;
  GraphRewriter rewriter_;
};

}  // namespace

Result<Graph> PadProducts(Graph graph, const RewriteRules& rules) {
  const ProductMultiple multiple = rules.MultipleOfProducts();
  if (multiple.needed == 1) return graph;
  ProductPadder padder(graph, multiple);
  if (!padder.Any()) return graph;
  return padder.Run();
}

}  // namespace ridge

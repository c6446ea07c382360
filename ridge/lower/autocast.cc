// We come from lower/pipeline.cc (all but fuse).  Known here: a whole training or evaluation graph.
// Goes on to lower/fuse.cc and plan/.
#include "ridge/lower/autocast.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ridge/graph/keep_f32.h"
#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

constexpr size_t kOperands = 2;  // of every product; what follows is added to the sums

// A product of f32 that may read 16 bits.
bool IsProduct(const Graph& graph, const Node& node) {
  if (KeepsF32(node.attrs)) return false;
  const std::string& op = node.op->name;
  if (op != "matmul" && op != "conv" && op != "conv_grad_input" && op != "conv_grad_weight")
    return false;
  return graph.type(node.inputs[0]).dtype == DType::kF32;
}

// Which products read 16 bits.  A convolution may have a way in f32 that needs far fewer
// multiplications (Winograd); convolutions of one shape, forward and backward, are decided on
// together, because they read the same x and dy.
class ProductChooser {
 public:
  ProductChooser(const Graph& graph, DType operands, KernelQuery& kernels)
      : graph_(graph),
        operands_(operands),
        kernels_(kernels),
        narrow_(kernels.Multiplies(operands)),
        rates_(kernels.rules().RatesOf(operands)) {}

  std::vector<bool> Run() {
    std::vector<bool> chosen(graph_.nodes().size(), false);
    for (size_t n = 0; n < chosen.size(); ++n) {
      const Node& node = graph_.nodes()[n];
      chosen[n] = IsProduct(graph_, node) && PaysForCasts(*node.op, graph_.Call(node), rates_);
      if (chosen[n] && narrow_ && IsConvolution(node)) AddConvolution(node);
    }
    if (!narrow_) return chosen;
    for (size_t n = 0; n < chosen.size(); ++n) {
      const Node& node = graph_.nodes()[n];
      if (chosen[n] && IsConvolution(node)) chosen[n] = lead_[ShapeOf(node)] >= 0;
    }
    return chosen;
  }

 private:
  using Shape = std::vector<Dims>;  // of x, w and y

  static bool IsConvolution(const Node& node) { return node.op->name != "matmul"; }

  Shape ShapeOf(const Node& node) const {
    const Dims &a = graph_.type(node.inputs[0]).dims, &b = graph_.type(node.inputs[1]).dims;
    const Dims& out = graph_.type(node.outputs[0]).dims;
    if (node.op->name == "conv") return {a, b, out};
    if (node.op->name == "conv_grad_input") return {out, b, a};
    return {a, out, b};
  }

  // In FLOPs at the rate of f32: what 16 bits save, and what f32 activations cost on their way.
  void AddConvolution(const Node& node) {
    const OpCall wide = graph_.Call(node);
    OpCall narrow = wide;
    for (size_t i = 0; i < kOperands; ++i) narrow.inputs[i].dtype = operands_;
    narrow.attrs["out_dtype"] = std::string(DTypeName(DType::kF32));
    const auto flops = static_cast<double>(CallCost(*node.op, wide).flops);
    int64_t moved = wide.outputs[0].bytes();
    for (size_t i = 0; i < kOperands; ++i) moved += wide.inputs[i].bytes();
    lead_[ShapeOf(node)] += flops / EfficiencyOf(node, wide) +
                            rates_.flops_per_byte * static_cast<double>(moved) -
                            flops / (rates_.speed * EfficiencyOf(node, narrow));
  }

  double EfficiencyOf(const Node& node, const OpCall& call) {
    return std::max(kLeastEfficiency, kernels_.BestEfficiency(*node.op, call));
  }

  static constexpr double kLeastEfficiency = 1e-6;

  const Graph& graph_;
  const DType operands_;
  KernelQuery& kernels_;
  const bool narrow_;  // the device multiplies such operands
  const ReducedRates rates_;
  std::map<Shape, double> lead_;  // of 16 bits
};

class ProductCaster {
 public:
  // `narrow`: products read `operands`; else f32 that is rounded to them.
  ProductCaster(const Graph& graph, DType operands, bool narrow, std::vector<bool> chosen)
      : graph_(graph),
        operands_(operands),
        narrow_(narrow),
        chosen_(std::move(chosen)),
        rewriter_(graph) {}

  Result<Graph> Run() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([this](const Node& node) { return Visit(node); }));
    return rewriter_.Finish();
  }

 private:
  Status Visit(const Node& node) {
    const NodeId id = graph_.IdOf(node);
    if (!chosen_[static_cast<size_t>(id)]) return rewriter_.Copy(node);
    std::vector<ValueId> inputs = rewriter_.Map(node.inputs);
    for (size_t i = 0; i < kOperands; ++i) {
      RIDGE_ASSIGN_OR_RETURN(inputs[i], CastOf(node.inputs[i], node));
    }
    AttrMap attrs = node.attrs;
    if (narrow_) attrs["out_dtype"] = std::string(DTypeName(DType::kF32));
    return rewriter_.Emit(*node.op, std::move(inputs), std::move(attrs), node.outputs,
                          node.location);
  }

  Result<ValueId> CastOf(ValueId id, const Node& reader) {
    const auto known = casts_.find(id);
    if (known != casts_.end()) return known->second;
    const std::string& name = graph_.value(id).name;
    RIDGE_ASSIGN_OR_RETURN(ValueId made, AddCast(rewriter_.Map(id), operands_, name, reader));
    if (!narrow_) {
      const std::string rounded = name + "." + DTypeName(operands_);
      RIDGE_ASSIGN_OR_RETURN(made, AddCast(made, DType::kF32, rounded, reader));
    }
    casts_[id] = made;
    return made;
  }

  // NAME.TYPE
  Result<ValueId> AddCast(ValueId from, DType to, const std::string& name, const Node& reader) {
    static const OpDef& cast = *FindOp("cast");
    AttrMap attrs = cast.attr_defaults;
    attrs["to"] = std::string(DTypeName(to));
    return rewriter_.AddNamedNode(cast, {from}, std::move(attrs),
                                  rewriter_.FreshName(name + "." + DTypeName(to)), reader.location);
  }

  const Graph& graph_;
  const DType operands_;
  const bool narrow_;
  const std::vector<bool> chosen_;  // by node
  GraphRewriter rewriter_;
  std::map<ValueId, ValueId> casts_;  // by old value
};

}  // namespace

bool PaysForCasts(const OpDef& op, const OpCall& product, const ReducedRates& rates) {
  int64_t elements = product.outputs[0].elements();
  for (size_t i = 0; i < kOperands; ++i) elements += product.inputs[i].elements();
  return CallCost(op, product).flops / rates.least_flops_per_element >= elements;
}

Result<Graph> AutocastMatmuls(Graph graph, DType operands, KernelQuery& kernels) {
  std::vector<bool> chosen = ProductChooser(graph, operands, kernels).Run();
  if (std::find(chosen.begin(), chosen.end(), true) == chosen.end()) return graph;
  return ProductCaster(graph, operands, kernels.Multiplies(operands), std::move(chosen)).Run();
}

}  // namespace ridge

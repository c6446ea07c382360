#include "ridge/learn/frozen_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/glob.h"
#include "ridge/core/nf4.h"
#include "ridge/core/split.h"
#include "ridge/graph/interpret.h"
#include "ridge/graph/name_patterns.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

// Below this the scales and the second kernel cost more than the bytes bring; as bitsandbytes has
// it for its 8-bit states.
constexpr int64_t kLeastElements = 4096;

std::string CodesName(const std::string& weight) { return weight + ".nf4"; }
std::string ScalesName(const std::string& weight) { return weight + ".nf4_scales"; }

AttrMap DequantizeAttrs(const TensorType& type) {
  return {{"dims", type.dims}, {"to", type.dtype}};
}

// The right operand of products, or the kernel of convolutions, and nothing else.
bool OnlyProductsRead(const Graph& graph, const GraphUses& uses, ValueId id) {
  const auto reads_it = [&](NodeId reader) {
    const Node& node = graph.node(reader);
    const bool product = node.op->name == "matmul" || node.op->name == "conv";
    return product && node.inputs[0] != id && node.inputs[1] == id;
  };
  const auto& readers = uses.ReadersOf(id);
  return !readers.empty() && uses.OnlyNodesRead(id) &&
         std::all_of(readers.begin(), readers.end(), reads_it);
}

bool MayQuantize(const Graph& graph, const GraphUses& uses, ValueId id) {
  const ValueInfo& info = graph.value(id);
  return !info.trainable && IsFloat(info.type.dtype) && info.type.elements() >= kLeastElements &&
         OnlyProductsRead(graph, uses, id);
}

Result<std::vector<ValueId>> FindFrozen(const Graph& graph, const FrozenWeightsOptions& options) {
  const GraphUses uses(graph);
  std::vector<ValueId> found;
  std::vector<std::string> names;
  for (const ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
    if (!MayQuantize(graph, uses, id)) continue;
    names.push_back(graph.value(id).name);
    if (options.targets.empty() || MatchesAny(names.back(), options.targets)) found.push_back(id);
  }
  for (const std::string& target : options.targets) {
    const bool matches = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return MatchesPattern(name, target);
    });
    if (!matches) return NoNameMatches(graph.name, "--frozen-weights target=", target, names);
  }
  if (!found.empty()) return found;
  return InvalidArgument(
      fmt::format("{}: --frozen-weights finds no frozen weight of at least {} numbers that only "
                  "products read. hint: --lora rank=8 or --freeze PATTERN freezes some",
                  graph.name, kLeastElements));
}

// A frozen parameter of 4-bit codes or of scales.
ValueId AddPart(GraphRewriter& rewriter, std::string name, TensorType type, Init init) {
  ValueInfo part;
  part.name = std::move(name);
  part.type = std::move(type);
  part.kind = ValueKind::kParameter;
  part.trainable = false;
  part.init = std::move(init);
  return rewriter.AddLeaf(std::move(part));
}

Status Quantize(ValueId id, GraphRewriter& rewriter) {
  auto weight = std::make_shared<const ValueInfo>(rewriter.from().value(id));
  const int64_t count = weight->type.elements();
  const ValueId codes = AddPart(rewriter, CodesName(weight->name),
                                {DType::kU8, {Nf4CodeBytes(count)}}, Init::Nf4Codes(weight));
  const ValueId scales = AddPart(rewriter, ScalesName(weight->name),
                                 {DType::kBF16, {Nf4ScaleCount(count)}}, Init::Nf4Scales(weight));
  RIDGE_ASSIGN_OR_RETURN(
      const ValueId again,
      rewriter.AddNamedNode(*FindOp("dequantize_nf4"), {codes, scales},
                            DequantizeAttrs(weight->type), weight->name, /*location=*/""));
  rewriter.Set(id, again);
  return Status();
}

// y of the codes and scales; `type` is the weight's.
Result<Tensor> Dequantized(const TensorType& type, const Tensor& codes, const Tensor& scales) {
  OpCall call;
  call.where = "a frozen weight";
  call.inputs = {codes.type(), scales.type()};
  call.attrs = DequantizeAttrs(type);
  const OpDef& op = *FindOp("dequantize_nf4");
  RIDGE_ASSIGN_OR_RETURN(call.outputs, InferCall(op, call));
  return EvaluateNode(op, call, {codes, scales})[0];
}

}  // namespace

Result<FrozenWeightsOptions> ParseFrozenWeights(const std::string& text) {
  FrozenWeightsOptions options;
  if (text.empty()) return options;
  const auto bad = [&](const std::string& why) {
    return InvalidArgument(fmt::format(
        "--frozen-weights is '{}': {}. hint: --frozen-weights nf4,target='*.attn.*'", text, why));
  };
  bool first = true;
  for (const std::string_view part : SplitAt(text, ',')) {
    constexpr std::string_view kTarget = "target=";
    if (std::exchange(first, false)) {
      if (part != "nf4" && part != "f32")
        return bad(fmt::format("'{}' is neither nf4 nor f32", part));
      options.nf4 = part == "nf4";
    } else if (part.starts_with(kTarget) && part.size() > kTarget.size() && options.nf4) {
      options.targets.emplace_back(part.substr(kTarget.size()));
    } else {
      return bad(fmt::format("'{}' is no target=PATTERN of nf4", part));
    }
  }
  return options;
}

Result<Graph> WithFrozenWeights(const Graph& forward, const FrozenWeightsOptions& options,
                                int64_t* kept) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<ValueId> frozen, FindFrozen(forward, options));
  if (kept != nullptr) *kept = static_cast<int64_t>(frozen.size());
  GraphRewriter rewriter(forward);
  for (ValueId id = 0; id < static_cast<ValueId>(forward.values().size()); ++id) {
    if (forward.value(id).kind == ValueKind::kResult) continue;
    if (std::binary_search(frozen.begin(), frozen.end(), id)) {
      RIDGE_RETURN_IF_ERROR(Quantize(id, rewriter));
    } else {
      rewriter.Use(id);  // in the order they had
    }
  }
  for (const Node& node : forward.nodes()) RIDGE_RETURN_IF_ERROR(rewriter.Copy(node));
  return rewriter.Finish();
}

Status DequantizeFrozen(const Graph& graph, std::map<std::string, Tensor>& tensors) {
  for (const ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
    const ValueInfo& weight = graph.value(id);
    const auto codes = tensors.find(CodesName(weight.name));
    const auto scales = tensors.find(ScalesName(weight.name));
    if (codes == tensors.end() || scales == tensors.end()) continue;
    RIDGE_ASSIGN_OR_RETURN(Tensor dequantized,
                           Dequantized(weight.type, codes->second, scales->second));
    tensors.erase(codes);
    tensors.erase(scales);
    tensors[weight.name] = std::move(dequantized);
  }
  return Status();
}

}  // namespace ridge

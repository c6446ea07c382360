#include "ridge/learn/master_params.h"

#include "ridge/core/tensor_file.h"
#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

bool IsHalf(const ValueInfo& info) {
  return info.kind == ValueKind::kParameter && info.trainable && Is16BitFloat(info.type.dtype);
}

Init Widened(const Init& init) {
  if (init.kind != Init::Kind::kTensor) return init;
  return Init::FromTensor(Converted(init.tensor, DType::kF32));
}

// param f16 -> master_param f32, cast to f16
Status AddMaster(ValueId id, GraphRewriter& rewriter) {
  ValueInfo master = rewriter.from().value(id);
  const std::string stored = DTypeName(master.type.dtype);
  master.type.dtype = DType::kF32;
  master.init = Widened(master.init);
  RIDGE_ASSIGN_OR_RETURN(
      const ValueId cast,
      rewriter.AddNamedNode(*FindOp("cast"), {rewriter.AddLeaf(std::move(master))},
                            {{"to", stored}}, rewriter.FreshName("cast"), /*location=*/""));
  rewriter.Set(id, cast);
  return Status();
}

}  // namespace

std::vector<std::string> HalfParameters(const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueInfo& info : graph.values()) {
    if (IsHalf(info)) names.push_back(info.name);
  }
  return names;
}

Result<Graph> WithMasterParams(Graph graph) {
  if (HalfParameters(graph).empty()) return graph;
  GraphRewriter rewriter(graph);
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values().size()); ++id) {
    const ValueInfo& info = graph.value(id);
    if (info.kind == ValueKind::kResult) continue;
    if (IsHalf(info)) {
      RIDGE_RETURN_IF_ERROR(AddMaster(id, rewriter));
    } else {
      rewriter.Use(id);  // in the order they had
    }
  }
  for (const Node& node : graph.nodes()) RIDGE_RETURN_IF_ERROR(rewriter.Copy(node));
  return rewriter.Finish();
}

}  // namespace ridge

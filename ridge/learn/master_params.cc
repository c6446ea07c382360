#include "ridge/learn/master_params.h"

#include "ridge/learn/graph_copy.h"

namespace ridge {
namespace {

bool IsHalf(const ValueInfo& info) {
  return info.kind == ValueKind::kParameter && info.trainable &&
         (info.type.dtype == DType::kF16 || info.type.dtype == DType::kBF16);
}

Init Widened(const Init& init) {
  if (init.kind != Init::Kind::kTensor) return init;
  Tensor wide({DType::kF32, init.tensor.type().dims});
  for (int64_t i = 0; i < wide.elements(); ++i)
    wide.as_mutable<float>()[i] = static_cast<float>(init.tensor.at(i));
  return Init::FromTensor(std::move(wide));
}

// param f16 -> master_param f32, cast to f16
void AddMaster(const ValueInfo& info, ValueId id, GraphCopier& copier) {
  Graph& graph = copier.to().graph();
  const ValueId master = graph.AddVariable(ValueKind::kParameter, info.name,
                                           {DType::kF32, info.type.dims}, Widened(info.init));
  graph.mutable_value(master).role = info.role;
  copier.Map(id, copier.to().Cast({master}, info.type.dtype));
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
  GraphCopier copier(graph);
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values().size()); ++id) {
    const ValueInfo& info = graph.value(id);
    if (info.kind == ValueKind::kResult) continue;
    if (IsHalf(info)) {
      AddMaster(info, id, copier);
    } else {
      copier.Mapped(id);  // in the order they had
    }
  }
  for (const Node& node : graph.nodes()) copier.CopyNode(node);
  for (const GraphOutput& output : graph.outputs())
    copier.to().Output(output.name, copier.Mapped(output.value));
  for (const GraphUpdate& update : graph.updates())
    copier.to().Update(copier.Mapped(update.variable), copier.Mapped(update.value));
  return copier.to().Build();
}

}  // namespace ridge

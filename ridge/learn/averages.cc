#include "ridge/learn/averages.h"

#include "ridge/learn/optimizers/optimizer.h"

namespace ridge {

void AppendAverages(GraphBuilder& b, double decay, Value step, Value apply) {
  if (!b.ok()) return;
  const Value first = Equal(step, 1.0);
  const Value one = b.Scalar(DType::kF32, 1);
  const Value part = Where(first, one, 1 - decay);
  const std::vector<GraphUpdate> updates = b.graph().updates();
  for (const GraphUpdate& update : updates) {
    if (!b.ok() || b.graph().value(update.variable).kind != ValueKind::kParameter) continue;
    const Value average = OptimizerState(b, b.At(update.variable), "ema");
    const Value gap = b.At(update.value) - average;
    const Value scale = Cast(part, gap.dtype());
    const Value move = gap * scale;
    const Value moved = average + move;
    b.Update(average, apply.valid() ? Where(apply, moved, average) : moved);
  }
}

Graph ReadAverages(Graph graph) {
  for (ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
    if (!graph.value(id).trainable) continue;
    graph.Rename(id, graph.value(id).name + kAverageSuffix);
    ValueInfo& info = graph.mutable_value(id);
    info.kind = ValueKind::kState;
    info.role = ValueRole::kOptimizer;
    info.init = Init::Zeros();
  }
  return graph;
}

void TakeAverages(std::map<std::string, Tensor>& tensors) {
  const std::string suffix = kAverageSuffix;
  for (auto at = tensors.begin(); at != tensors.end();) {
    const auto now = at++;
    if (!now->first.ends_with(suffix)) continue;
    const auto param = tensors.find(now->first.substr(0, now->first.size() - suffix.size()));
    if (param == tensors.end()) continue;
    param->second = now->second;
    tensors.erase(now);
  }
}

}  // namespace ridge

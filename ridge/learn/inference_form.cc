#include "ridge/learn/inference_form.h"

#include <fmt/format.h>

#include <map>

#include "ridge/learn/graph_copy.h"

namespace ridge {
namespace {

// The batch_norm outputs that a value is computed from; the walk stops at them.
std::vector<ValueId> BatchNormSources(const Graph& graph, ValueId value) {
  std::vector<ValueId> found, open = {value};
  std::vector<bool> seen(graph.values().size(), false);
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    if (id == kNoValue || seen[static_cast<size_t>(id)]) continue;
    seen[static_cast<size_t>(id)] = true;
    const ValueInfo& info = graph.value(id);
    if (info.kind != ValueKind::kResult) continue;
    const Node& node = graph.node(info.producer);
    if (node.op->name == "batch_norm") {
      found.push_back(id);
    } else {
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
  }
  return found;
}

Status AmbiguousUpdate(const Graph& graph, ValueId variable) {
  return Status(ErrorCode::kInvalidModel,
                fmt::format("{}: the update of '{}' reads both a mean and a var of batch_norm; "
                            "it must read one kind",
                            graph.name, graph.value(variable).name));
}

// batch_norm(x, scale, shift) -> batch_norm_inference(x, scale, shift, running mean, running var)
Status ReplaceBatchNorm(const Graph& graph, const Node& node,
                        const std::map<NodeId, RunningStatistics>& running, GraphCopier& copier) {
  const auto found = running.find(graph.value(node.outputs[0]).producer);
  if (found == running.end() || found->second.mean == kNoValue || found->second.var == kNoValue) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("{}: no running mean and variance, so it can't be evaluated. hint: "
                              "add states and 'update running_mean = ...' from its mean and var",
                              graph.Where(node)));
  }
  const Value mean = copier.Mapped(found->second.mean);
  const Value var = copier.Mapped(found->second.var);
  std::vector<Value> inputs = copier.MappedInputs(node);
  inputs.push_back(mean);
  inputs.push_back(var);
  const Value y =
      copier.to().Op("batch_norm_inference", std::move(inputs),
                     {{"epsilon", node.attrs.at("epsilon")}}, graph.value(node.outputs[0]).name);
  copier.Map(node.outputs[0], y);
  copier.Map(node.outputs[1], mean);
  copier.Map(node.outputs[2], var);
  return copier.to().status();
}

}  // namespace

Result<std::vector<RunningStatistics>> FindRunningStatistics(const Graph& graph) {
  std::map<NodeId, RunningStatistics> by_node;
  for (const GraphUpdate& update : graph.updates()) {
    const ValueInfo& variable = graph.value(update.variable);
    if (variable.kind != ValueKind::kState || variable.role == ValueRole::kOptimizer) continue;
    const std::vector<ValueId> sources = BatchNormSources(graph, update.value);
    if (sources.empty()) continue;
    const int statistic = graph.value(sources[0]).output_index;
    for (ValueId id : sources) {
      const ValueInfo& source = graph.value(id);
      // Several nodes may share one running statistic, but not a mean and a var.
      if (source.output_index != statistic) return AmbiguousUpdate(graph, update.variable);
      RunningStatistics& entry = by_node[source.producer];
      entry.node = source.producer;
      if (statistic == 1) entry.mean = update.variable;
      if (statistic == 2) entry.var = update.variable;
    }
  }
  std::vector<RunningStatistics> all;
  for (const auto& [node, entry] : by_node) all.push_back(entry);
  return all;
}

Result<Graph> InferenceForm(const Graph& forward) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<RunningStatistics> statistics,
                         FindRunningStatistics(forward));
  std::map<NodeId, RunningStatistics> running;
  for (const RunningStatistics& entry : statistics) running[entry.node] = entry;
  std::vector<ValueId> roots;
  for (const GraphOutput& output : forward.outputs()) roots.push_back(output.value);
  const std::vector<bool> needed = NeededNodes(forward, roots);
  GraphCopier copier(forward);
  for (size_t n = 0; n < forward.nodes().size(); ++n) {
    const Node& node = forward.nodes()[n];
    if (!needed[n]) continue;
    if (node.op->name == "batch_norm") {
      RIDGE_RETURN_IF_ERROR(ReplaceBatchNorm(forward, node, running, copier));
    } else if (node.op->name == "dropout") {
      copier.Map(node.outputs[0], copier.Mapped(node.inputs[0]));
    } else {
      copier.CopyNode(node);
    }
  }
  for (const GraphOutput& output : forward.outputs())
    copier.to().Output(output.name, copier.Mapped(output.value));
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, copier.to().Build());
  return KeepNeeded(graph);  // what only fed a dropout or a running statistic
}

}  // namespace ridge

#include "ridge/learn/inference_form.h"

#include <fmt/format.h>

#include <map>

#include "ridge/graph/passes/passes.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/reach.h"

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
    const Node* node = graph.producer(id);
    if (node == nullptr) continue;
    if (node->op->name == "batch_norm") {
      found.push_back(id);
    } else {
      open.insert(open.end(), node->inputs.begin(), node->inputs.end());
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
                        const std::map<NodeId, RunningStatistics>& running,
                        GraphRewriter& rewriter) {
  const auto found = running.find(graph.IdOf(node));
  if (found == running.end() || found->second.mean == kNoValue || found->second.var == kNoValue) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("{}: no running mean and variance, so it can't be evaluated. hint: "
                              "add states and 'update running_mean = ...' from its mean and var",
                              graph.Where(node)));
  }
  const ValueId mean = rewriter.Use(found->second.mean);
  const ValueId var = rewriter.Use(found->second.var);
  std::vector<ValueId> inputs = rewriter.Use(node.inputs);
  inputs.push_back(mean);
  inputs.push_back(var);
  rewriter.Set(node.outputs[1], mean);
  rewriter.Set(node.outputs[2], var);
  return rewriter.Emit(*FindOp("batch_norm_inference"), std::move(inputs),
                       {{"epsilon", node.attrs.at("epsilon")}}, {node.outputs[0]}, /*location=*/"");
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

namespace {

using StatisticsByNode = std::map<NodeId, RunningStatistics>;

Result<StatisticsByNode> StatisticsOf(const Graph& graph) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<RunningStatistics> statistics,
                         FindRunningStatistics(graph));
  StatisticsByNode running;
  for (const RunningStatistics& entry : statistics) running[entry.node] = entry;
  return running;
}

}  // namespace

Result<Graph> WithFrozenBatchNorm(const Graph& forward) {
  RIDGE_ASSIGN_OR_RETURN(const StatisticsByNode running, StatisticsOf(forward));
  Graph still = forward;
  still.ClearUpdates();
  for (const GraphUpdate& update : forward.updates()) {
    if (BatchNormSources(forward, update.value).empty())
      still.AddUpdate(update.variable, update.value);
  }
  GraphRewriter rewriter(still);
  RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) {
    if (node.op->name == "batch_norm") return ReplaceBatchNorm(still, node, running, rewriter);
    return rewriter.Copy(node);
  }));
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, rewriter.Finish());
  return KeepNeeded(graph);
}

Result<Graph> InferenceForm(const Graph& forward) {
  RIDGE_ASSIGN_OR_RETURN(const StatisticsByNode running, StatisticsOf(forward));
  Graph pure = forward;
  pure.ClearUpdates();
  const std::vector<bool> needed = ProducersOf(pure, Ancestors(pure, OutputValues(pure)));
  GraphRewriter rewriter(pure);
  for (size_t n = 0; n < pure.nodes().size(); ++n) {
    const Node& node = pure.nodes()[n];
    if (!needed[n]) continue;
    if (node.op->name == "batch_norm") {
      RIDGE_RETURN_IF_ERROR(ReplaceBatchNorm(pure, node, running, rewriter));
    } else if (node.op->name == "dropout") {
      rewriter.Set(node.outputs[0], rewriter.Use(node.inputs[0]));
    } else {
      RIDGE_RETURN_IF_ERROR(rewriter.Copy(node));
    }
  }
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, rewriter.Finish());
  return KeepNeeded(graph);  // what only fed a dropout or a running statistic
}

}  // namespace ridge

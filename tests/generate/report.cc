#include "tests/generate/report.h"

#include <fmt/format.h>

#include <set>

namespace ridge {

void CountGraph(const Graph& graph, const GraphJudgement& judgement, RangeReport& report) {
  ++report.graphs;
  report.nodes += static_cast<int64_t>(graph.nodes().size());
  report.kinks += judgement.kink ? 1 : 0;
  if (!judgement.not_checked.empty()) ++report.not_checked[judgement.not_checked];
  std::set<std::string> names;
  for (const Node& node : graph.nodes()) names.insert(node.op->name);
  for (const std::string& name : names) ++report.operators[name];
}

void PrintReport(const RangeReport& report, bool operators) {
  const auto graphs = static_cast<double>(std::max<int64_t>(report.graphs, 1));
  if (operators) {
    for (const auto& [name, count] : report.operators) fmt::print("{:<28} {}\n", name, count);
  }
  for (const auto& [reason, count] : report.not_checked)
    fmt::print("not checked: {} ({})\n", reason, count);
  fmt::print(
      "{} graphs, {:.1f} nodes each, {} operators, {} beside kinks ({:.1f} %), {} findings, "
      "{:.1f} ms each\n",
      report.graphs, static_cast<double>(report.nodes) / graphs, report.operators.size(),
      report.kinks, 100 * static_cast<double>(report.kinks) / graphs, report.findings,
      1000 * report.seconds / graphs);
}

std::vector<std::string> NotDrawn(const RangeReport& report) {
  std::vector<std::string> missing;
  for (const OpDef& op : AllOps()) {
    if (op.gradient != nullptr && !report.operators.contains(op.name)) missing.push_back(op.name);
  }
  return missing;
}

}  // namespace ridge

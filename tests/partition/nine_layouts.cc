#include "tests/partition/nine_layouts.h"

#include <fmt/format.h>

#include "ridge/learn/training_graph.h"
#include "ridge/partition/normal_form.h"

namespace ridge {

const std::vector<NamedLayout>& NineLayouts() {
  static const std::vector<NamedLayout> layouts = {{"d=4", ""},
                                                   {"d=2", "zero1"},
                                                   {"d=2", "zero3"},
                                                   {"t=2", ""},
                                                   {"t=4", ""},
                                                   {"t=2", "sequence"},
                                                   {"d=2,t=2", ""},
                                                   {"d=2,t=2", "sequence"},
                                                   {"d=2,t=2", "zero3,sequence"}};
  return layouts;
}

Result<StepGraphs> TrainingStep(const Graph& forward, const std::string& optimizer,
                                double clip_norm) {
  TrainingGraphOptions options;
  options.optimizer.name = optimizer;
  options.clip_norm = clip_norm;
  if (optimizer == "sgd") options.optimizer.momentum = 0.9;
  RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> graphs, BuildTrainingGraphs(forward, options));
  RIDGE_ASSIGN_OR_RETURN(Graph form, NormalForm(graphs[0].graph));
  return StepGraphs{std::move(graphs[0].graph), std::move(form)};
}

Result<Partitioned> Lay(const Graph& form, const NamedLayout& layout) {
  RIDGE_ASSIGN_OR_RETURN(const Mesh mesh, ParseMesh(layout.mesh));
  RIDGE_ASSIGN_OR_RETURN(const Sharding sharding, ParseSharding(layout.shard));
  RIDGE_ASSIGN_OR_RETURN(const Layout made, MakeLayout(form, mesh, sharding));
  return Partition(form, made, mesh);
}

std::string CollectiveText(const Partitioned& parts) {
  std::string text;
  for (const CollectiveSum& sum : SumCollectives(parts.collectives))
    text +=
        fmt::format("  {} {:<14} {:>4}  {:>14} bytes\n", sum.axis, sum.op, sum.count, sum.bytes);
  return text;
}

}  // namespace ridge

// Random graphs under random annotations: training steps on virtual devices against one device.
//
//   ridge_partition_random --seeds 0:300      a range; a finding prints its seed, and the exit code
//                                             is 1
//
// A seed decides the graph, the mesh, which values are annotated and how, and how variables are
// stored.  Any annotation is right: what does not fit together is moved.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "ridge/learn/training_graph.h"
#include "ridge/partition/normal_form.h"
#include "ridge/partition/partition.h"
#include "tests/generate/dice.h"
#include "tests/generate/draw.h"
#include "tests/generate/leaves.h"
#include "tests/partition/compare.h"

namespace ridge {
namespace {

constexpr int kSteps = 2;
constexpr double kRate = 1e-3;

Mesh RandomMesh(Dice& dice) {
  const Mesh meshes[] = {{{{"a", 2}}}, {{{"a", 3}}},           {{{"a", 2}, {"b", 2}}},
                         {{{"a", 4}}}, {{{"a", 2}, {"b", 3}}}, {{{"a", 2}, {"b", 2}, {"c", 2}}}};
  return meshes[dice.Below(6)];
}

Split RandomSplit(Dice& dice, const Dims& dims, const Mesh& mesh) {
  Split split;
  for (int axis = 0; axis < static_cast<int>(mesh.axes.size()); ++axis) {
    if (dims.empty() || dice.Percent(40)) continue;
    const Cut cut{static_cast<int>(dice.Below(static_cast<int64_t>(dims.size()))), axis,
                  dice.Percent(70) ? 1 : dice.From(2, 4)};
    if (CanCut(dims, split, cut, mesh)) split.Add(cut);
  }
  return split;
}

Layout RandomLayout(Dice& dice, const Graph& graph, const Mesh& mesh) {
  Layout layout;
  const int64_t percent = dice.From(2, 40);
  for (size_t v = 0; v < graph.values().size(); ++v) {
    const ValueInfo& info = graph.values()[v];
    const auto id = static_cast<ValueId>(v);
    if (info.kind == ValueKind::kConstant) continue;
    const bool variable = info.kind == ValueKind::kParameter || info.kind == ValueKind::kState;
    if (dice.Percent(static_cast<int>(percent)))
      layout.use[id] = RandomSplit(dice, info.type.dims, mesh);
    if (variable && dice.Percent(40)) layout.stored[id] = RandomSplit(dice, info.type.dims, mesh);
  }
  return layout;
}

// The training step of the drawn graph, or what it computes where it has no gradient.
Graph DrawStep(uint64_t seed) {
  const Graph forward = DrawGraph(seed);
  TrainingGraphOptions options;
  options.optimizer.name = "sgd";
  options.optimizer.momentum = 0.9;
  Result<std::vector<NamedGraph>> graphs = BuildTrainingGraphs(forward, options);
  return graphs.ok() ? std::move((*graphs)[0].graph) : forward;
}

struct Tally {
  int64_t graphs = 0, collectives = 0, cut_nodes = 0;
};

std::string Judge(uint64_t seed, Tally& tally) {
  const Graph step = DrawStep(seed);
  Dice dice(seed ^ 0x9A7);
  const Result<Graph> form = NormalForm(step);
  if (!form.ok()) return form.status().message();
  const Mesh mesh = RandomMesh(dice);
  const Layout layout = RandomLayout(dice, *form, mesh);
  const Result<Partitioned> parts = Partition(*form, layout, mesh);
  if (!parts.ok()) return parts.status().message();
  NamedNumbers inputs = NumbersOf(LeavesOf(step));
  if (inputs.contains(kLrInput)) inputs[kLrInput] = {kRate};
  ++tally.graphs;
  tally.collectives += static_cast<int64_t>(parts->collectives.size());
  return CompareSteps(step, *parts, *form, inputs, kSteps);
}

int Run(uint64_t first, uint64_t last) {
  Tally tally;
  int64_t wrong = 0;
  for (uint64_t seed = first; seed < last; ++seed) {
    std::string found;
    try {
      found = Judge(seed, tally);
    } catch (const Bug& bug) {
      found = bug.what();
    }
    if (found.empty()) continue;
    ++wrong;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), found.c_str());
  }
  std::printf("%lld graphs, %lld collectives, %lld findings\n",
              static_cast<long long>(tally.graphs), static_cast<long long>(tally.collectives),
              static_cast<long long>(wrong));
  return wrong == 0 && tally.collectives > 0 ? 0 : 1;
}

}  // namespace
}  // namespace ridge

int main(int argc, char** argv) {
  unsigned long long first = 0, last = 0;
  if (argc != 3 || std::string(argv[1]) != "--seeds" ||
      std::sscanf(argv[2], "%llu:%llu", &first, &last) != 2) {
    std::fprintf(stderr, "usage: ridge_partition_random --seeds FIRST:END\n");
    return 2;
  }
  return ridge::Run(first, last);
}

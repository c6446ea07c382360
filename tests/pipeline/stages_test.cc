// Stages of the models on record: what they hold and send.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ridge/core/units.h"
#include "ridge/models/model.h"
#include "ridge/pipeline/cuts.h"
#include "tests/partition/golden.h"
#include "tests/pipeline/whole_step.h"

namespace ridge {
namespace {

std::vector<double> NodeFlops(const Graph& micro) {
  std::vector<double> seconds;
  for (const Node& node : micro.nodes())
    seconds.push_back(static_cast<double>(CallCost(*node.op, micro.Call(node)).flops));
  return seconds;
}

std::string Names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += " " + name;
  return text;
}

std::string StagesText(const std::string& spec, int64_t batch, int chunks) {
  std::string text = fmt::format("{} batch {}, {} stages\n", spec, batch, chunks);
  const Result<Graph> forward = BuildModel(spec, {.batch = batch});
  if (!forward.ok()) return text + forward.status().message();
  const Result<WholeStep> step = MakeWholeStep(*forward, 4, {.optimizer = "adam"});
  if (!step.ok()) return text + step.status().message() + "\n";
  const StageCosts costs(step->untied.micro, step->untied.update, step->untied.places,
                         NodeFlops(step->untied.micro));
  const Result<std::vector<int>> borders =
      ChooseCuts(costs, {chunks, std::vector<int64_t>(static_cast<size_t>(chunks), 1)});
  if (!borders.ok()) return text + borders.status().message() + "\n";
  const Result<std::vector<PipelineStage>> stages =
      MakeStages(step->untied, *borders, /*separate_weights=*/true);
  if (!stages.ok()) return text + stages.status().message() + "\n";
  const double all = costs.Seconds(0, costs.positions());
  for (const PipelineStage& s : *stages) {
    text += fmt::format(
        "  {:>4} forward {:>4} backward {:>4} weights  {:>4.1f} % of operations, keeps {} ({})\n",
        s.forward.nodes().size(), s.backward.nodes().size(), s.weights.nodes().size(),
        100 * costs.Seconds(s.begin, s.end) / all, s.keeps.size(),
        FormatBytes(costs.KeptBytes(s.begin)[static_cast<size_t>(s.end)]));
    if (s.forward_bytes > 0)
      text += fmt::format("       sends{} ({})\n", Names(s.sends_forward),
                          FormatBytes(s.forward_bytes));
    if (s.backward_bytes > 0)
      text += fmt::format("       returns{} ({})\n", Names(s.sends_backward),
                          FormatBytes(s.backward_bytes));
  }
  for (const TiedCopy& copy : step->untied.copies)
    text += fmt::format("  {} is {}\n", copy.variable, copy.of);
  return text;
}

TEST(Stages, AreThoseOnRecord) {
  ExpectGolden("../pipeline/stages.txt",
               StagesText("gpt", 8, 2) + StagesText("gpt", 8, 4) + StagesText("bert", 8, 4) +
                   StagesText("resnet50", 32, 4) + StagesText("gpt:tied=1", 8, 2));
}

}  // namespace
}  // namespace ridge

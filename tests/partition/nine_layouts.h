// The nine layouts that tests ask for, and the training step that they are asked of.
#pragma once
#include <string>
#include <vector>

#include "ridge/partition/layouts.h"
#include "ridge/partition/partition.h"

namespace ridge {

struct NamedLayout {
  std::string mesh, shard;
  std::string text() const { return shard.empty() ? mesh : mesh + " " + shard; }
};
const std::vector<NamedLayout>& NineLayouts();

// A training step as the tests need it: the whole graph, and in normal form.
struct StepGraphs {
  Graph whole, form;
};
Result<StepGraphs> TrainingStep(const Graph& forward, const std::string& optimizer,
                                double clip_norm = 0);

Result<Partitioned> Lay(const Graph& form, const NamedLayout& layout);

// "d: 13 all_reduce (24 KiB)" for each operator and axis.
std::string CollectiveText(const Partitioned& parts);

}  // namespace ridge

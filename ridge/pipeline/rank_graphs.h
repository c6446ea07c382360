// The graphs that one device of a pipeline plans, a step each (role.h has their names).
//
// What a micro batch leaves between two graphs lies in states, which the graph that makes it
// updates: the plan has room for them, and they are written where they stay.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/named_graph.h"
#include "ridge/pipeline/eval_stages.h"
#include "ridge/pipeline/role.h"
#include "ridge/pipeline/stages.h"

namespace ridge {

// A step that was cut; stage c is chunk c of the schedule.
struct PipelineCut {
  const UntiedStep* step = nullptr;  // outlives this
  std::vector<PipelineStage> stages;
  PipelineSchedule schedule;
  int capacity = 1;
  const Graph* eval = nullptr;  // null: there is no evaluation
  std::vector<EvalStage> eval_stages;
};

struct RankGraphs {
  std::vector<NamedGraph> graphs;
  std::map<std::string, int64_t> copies;  // of states of a micro batch
};

Result<RankGraphs> GraphsOfRank(const PipelineCut& cut, int device);

// Without variables, kernels and seconds, which plans know.
PipelineRole RoleOf(const PipelineCut& cut, int device);

}  // namespace ridge

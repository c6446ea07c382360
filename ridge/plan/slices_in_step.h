// Slices in step: each node of the loop runs on all slices before the next one, since some of them
// read what all slices have (OpDef::gathers_slices).
//
// Every value of the loop then has a part for each slice.  What does not depend on the slice runs
// once.
#pragma once
#include <vector>

#include "ridge/graph/named_graph.h"
#include "ridge/plan/program.h"

namespace ridge {

bool RunsInStep(const NamedGraph& named);

// Forms the parts of the loop: a node each, with the copies of its results into sums.  `sources`
// has the nodes' order (LoweredGraph).
// REQUIRES: the loop has no parts, and step.sums is known.
void FormSteps(const MemorySpace& memory, StepPlan& step, std::vector<NodeId>& sources);

}  // namespace ridge

// Side by side: small nodes that do not wait for each other run at the same time, a thread each.
//
// A section is a run of neighbours in the schedule.  Its nodes fall apart into groups that share no
// bytes that one of them writes; the groups are dealt to lanes, and each lane runs its nodes in
// their order on one thread.  All bytes that a section touches are kept until its end, so what runs
// at the same time never shares any (memory/placement.cc).
//
// A node that alone would fill the cores stays alone: only nodes that fit a core's cache are taken,
// and only where nominal costs foresee a gain.  docs/design/0016-side-by-side.md.
#pragma once
#include "ridge/plan/program.h"

namespace ridge {

// --inter-op
struct SideBySide {
  int lanes = 1;        // so many nodes at most at the same time; 1: none
  bool always = false;  // also in steps that it shortens by little
};

// Sets PlannedNode::section and lane, and the choices of the nodes that run beside others.  Steps
// in slices stay as they are.  Deterministic; time linear in the nodes.
// `threads`: of a node that runs alone.
// REQUIRES: lowered, and no bytes shared in place yet.
void FormSections(KernelQuery& kernels, int threads, const SideBySide& how, StepPlan& step);

// Nodes' seconds as if each ran alone become parts of the section's: of its longest lane.  So the
// step's are the sum of its nodes'.
void ShareSectionSeconds(StepPlan& step);

}  // namespace ridge

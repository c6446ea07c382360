// Inter-op parallelism: small independent nodes run at the same time, one thread each.
//
// A parallel region is a run of consecutive nodes of the schedule.  Its nodes form groups: no group
// writes bytes that another touches.  Groups are distributed over streams, and each stream runs its
// nodes in order on one thread.  All bytes that a region touches stay live until its end, so
// streams never reuse each other's bytes (memory/placement.cc).
//
// A region takes only nodes that fit a core's cache, and only where nominal costs predict a gain; a
// node that can occupy all cores runs by itself.  docs/design/0016-side-by-side.md.
#pragma once
#include "ridge/plan/program.h"

namespace ridge {

// --inter-op
struct InterOp {
  int streams = 1;      // most nodes that run at the same time; 1: off
  bool always = false;  // also in steps that gain little
};

// Cuts each sequence of the step's body, its loop included, into sequences and parallel regions;
// reorders a region's nodes so that each stream is a range, and gives them one-thread kernels.
// Deterministic; time linear in the nodes.
// REQUIRES: LowerGraph() has run; ShareInPlace() has not.
void FormParallelRegions(KernelQuery& kernels, const InterOp& how, StepPlan& step);

}  // namespace ridge

// Region: the order in which a step runs, as a tree over its schedule.
//
//   sequence   its parts in order
//   loop       its parts in order, once for each in-step micro-batch; of micro-batches in step each
//              part for all of them before the next part
//   parallel   its parts, the streams, at the same time; each on one thread
//
// A region is the nodes [first, end) of StepPlan::nodes.  Its parts cover them in order and without
// gaps; a region without parts runs its nodes one after the other.  Regions nest: a loop may hold
// parallel regions.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

namespace ridge {

struct StepPlan;

// The first iteration of a loop, which starts sums instead of adding to them: they need no zeros.
struct PeeledIteration {
  bool every = false;             // each iteration starts sums, which are added in a tree
  std::vector<int> skipped;       // the additions, which it leaves out; ascending
  std::map<int, int> written_in;  // by value: the sum that it is written into instead (persistent)
};

struct Region {
  enum class Kind : uint8_t { kSequence, kLoop, kParallel };
  Kind kind = Kind::kSequence;
  int first = 0, end = 0;
  std::vector<Region> parts = {};
  // Of a loop:
  int64_t trips = 1;
  PeeledIteration peeled = {};
  bool in_step = false;
  std::vector<int> once = {};  // nodes that run with the last micro-batch alone; ascending

  static Region Sequence(int first, int end) {
    return {.kind = Kind::kSequence, .first = first, .end = end};
  }
  static Region Loop(int first, int end, int64_t trips) {
    return {.kind = Kind::kLoop, .first = first, .end = end, .trips = trips};
  }
  bool Holds(int node) const { return first <= node && node < end; }
};

// Where a node is in the tree.
struct NodePlace {
  int64_t trips = 1;  // how often it runs in one execution of the step
  bool in_loop = false;
  bool skips_first = false;  // left out of the peeled iteration
  bool once = false;         // in a loop, with its last iteration alone
  int parallel = -1;         // which parallel region of the step, in order; -1: none
  int stream = 0;            // which part of it
  int first = 0, last = 0;   // the nodes that may run at the same time, itself included
};

// By node.
std::vector<NodePlace> NodePlaces(const StepPlan& step);

// How often the node runs in one execution of the step.
int64_t RunsOf(const StepPlan& step, size_t node);

// The loop over the step's micro-batches; nullptr where there is none.
const Region* MicroBatchLoop(const StepPlan& step);
Region* MicroBatchLoop(StepPlan& step);

// The sum that the first micro-batch writes the value into (PeeledIteration); -1: none.
int FirstWrittenIn(const StepPlan& step, int value);
// Whether this micro-batch is peeled.
bool IsPeeled(const StepPlan& step, int64_t iteration);

// Calls visit(region) for the tree below and with `region`, parents first.
template <typename Visit>
void ForEachRegion(const Region& region, const Visit& visit) {
  visit(region);
  for (const Region& part : region.parts) ForEachRegion(part, visit);
}

}  // namespace ridge

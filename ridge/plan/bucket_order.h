// The order of a step's nodes where its sums leave in buckets (FormTreeSums): what is waited for
// first leaves first, and what reads a bucket that comes late runs late.
//
// A node passes others only if neither writes what the other touches, so results keep their bits.
// Steps whose nodes run at the same time, or slices in step, stay as they are.
#pragma once
#include <map>
#include <vector>

#include "ridge/plan/program.h"

namespace ridge {

// The sums that are outputs of the step, such as the loss; in the order of step.sums.
std::vector<int> OutputSums(const StepPlan& step);

// Moves the nodes of the loop that only outputs need to where their operands are there.
// REQUIRES: a loop.
void MoveOutputsUp(StepPlan& step);

// Sorts the nodes behind the loop by the last bucket that they need.  `bucket_of`: by value.
// REQUIRES: a loop.
void SortByBucket(const std::map<int, int>& bucket_of, StepPlan& step);

}  // namespace ridge

// The invariant check of every plan: each node reads the bytes that its inputs' producers wrote.
#pragma once
#include "ridge/plan/program.h"

namespace ridge {

// Walks each step of a placed program as the executor does.  Fails with kInternal when
// - two values, variables or workspaces that are live at the same time share a byte;
// - a node reads a value that another has overwritten, or overwrites its own input although its
//   kernel does not allow that;
// - a slice does not add to a sum over the slices;
// - one stream of a parallel region writes bytes that another touches;
// - the tree of regions does not cover the nodes;
// - a placement is outside its region or not at a multiple of the alignment.
// The message names both values.
Status CheckPlacement(const Program& program);

}  // namespace ridge

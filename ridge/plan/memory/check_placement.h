// The invariant check of every plan: no node finds other bytes than those it was given to read.
#pragma once
#include "ridge/plan/program.h"

namespace ridge {

// Walks each step of a placed program as the executor does.  Fails with kInternal when
// - two things that are needed at the same time share a byte: values, variables, workspaces;
// - a node reads a value that another has written over, or writes over what it reads without its
//   kernel allowing that;
// - a slice leaves a sum over the slices as it was;
// - two lanes of a section touch bytes that one of them writes;
// - something lies outside its region, or not at a multiple of kAlignment.
// The message names both things.
Status CheckPlacement(const Program& program);

}  // namespace ridge

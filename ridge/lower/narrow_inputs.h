// NarrowInputs: a batch that every step rounds first comes in 16 bits.
//
// What fills the input rounds instead: the slots, and what crosses to a device, are half as large,
// and no step casts.  The transform runs on all graphs of a job at once, since they share the
// inputs, behind autocast.h.
#pragma once
#include <vector>

#include "ridge/graph/named_graph.h"

namespace ridge {

// Inputs of f32 of more than one element, which all readers in all `graphs` cast to one type of 16
// bits, become inputs of that type; their casts go.  # bitwise, of what is cast before it is
// written
Result<std::vector<NamedGraph>> NarrowInputs(std::vector<NamedGraph> graphs);

}  // namespace ridge

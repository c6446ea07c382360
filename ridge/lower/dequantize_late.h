// DequantizeLate: each reader of a weight in 4 bits has its own copy of the floats.
//
// One copy for all would live from the forward product to the backward one, and all weights' floats
// would be there at once.  The transform runs after the passes that would merge the copies.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

// The dequantize_nf4 of a value stands right before each node that reads it, and gives the type
// that a cast of it gave.  # bitwise; where a cast rounded a second time, each number is rounded
// once
Result<Graph> DequantizeLate(Graph graph);

}  // namespace ridge

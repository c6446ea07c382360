// A step of the algebra pass: relu's mask moves before the gradient of a max pool.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

Result<Graph> MaskBeforePool(Graph graph);

}  // namespace ridge

// A step of the algebra pass: moves relu's mask before the gradient of a max pool.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

Result<Graph> SinkReluGrad(Graph graph);

}  // namespace ridge

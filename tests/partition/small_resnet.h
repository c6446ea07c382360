// A residual network in small: convolutions, batch norms with running statistics, a block with a
// projection, a pool and a classifier.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

Result<Graph> SmallResnet();

}  // namespace ridge

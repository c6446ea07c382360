// A step of the fuse pass: a convolution of few inputs, relu and a max pool become one node.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

Result<Graph> FuseConvPool(Graph graph);

}  // namespace ridge

// A step of the fuse pass: fuses a convolution of few channels, relu and a max pool into one node.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

Result<Graph> FuseConvPool(Graph graph);

}  // namespace ridge

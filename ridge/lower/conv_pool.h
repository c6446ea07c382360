// A step of the fuse pass: fuses a convolution of few channels, relu and a max pool into one node.
// Runs before rematerialization, too, whose copies hide the value that forward and backward share.
#pragma once
#include "ridge/graph/graph.h"

namespace ridge {

Result<Graph> FuseConvPool(Graph graph);

}  // namespace ridge

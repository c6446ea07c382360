// A step of the fuse pass: fuses a convolution, relu and a max pool into one node where
// `rules` do.
// Runs before rematerialization, too, whose copies hide the value that forward and backward share.
#pragma once
#include "ridge/graph/graph.h"
#include "ridge/lower/rewrite_rules.h"

namespace ridge {

Result<Graph> FuseConvPool(Graph graph, const RewriteRules& rules);

}  // namespace ridge

// GraphNodes: a model's graph as TensorBoard's page GRAPHS shows it.
//
// Names are cut at dots, so that "layer1.0.conv1" lies in a box "layer1" with a box "0", and with
// it what reads it and has no name of its own.
#pragma once
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/observe/event_writer.h"

namespace ridge {

std::vector<GraphNode> GraphNodes(const Graph& graph);

}  // namespace ridge

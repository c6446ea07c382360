// Partition: a graph of the whole job -> the graph that each device of a mesh runs.
//
// All devices run the same local graph.  What differs is what they hold: their parts of inputs and
// variables, and their place on each axis (inputs `ridge.coordinate.AXIS`, where they are read).
// Values keep their names; collectives.h has the operators by which they change how they lie.
//
//   Graph form = *NormalForm(train.graph);
//   Partitioned p = *Partition(form, layout, mesh);
//
// Pure: the same graph, layout and mesh give the same local graph.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/partition/collectives.h"
#include "ridge/partition/propagate.h"

namespace ridge {

struct Partitioned {
  Graph local;
  Mesh mesh;
  // By value of the whole graph: leaves as they are given or stored, results as they are computed.
  std::vector<Split> splits;
  std::vector<MeshCollective> collectives;  // in the order of the local graph's nodes
  int rounds = 0;                           // of the propagation
};

// `graph` is in normal form.  Variables of the local graph start with zeros: their contents are the
// device's parts of what the whole graph's variables start with.
// Fails with kInvalidArgument when the layout cuts an extent that is no multiple, and with
// kUnsupported when a node has no local form.
Result<Partitioned> Partition(const Graph& graph, const Layout& layout, const Mesh& mesh);

// Collectives of equal operator and axis together, in order of first use.
struct CollectiveSum {
  std::string op, axis;
  int64_t count = 0, bytes = 0, sent_bytes = 0;
};
std::vector<CollectiveSum> SumCollectives(const std::vector<MeshCollective>& collectives);

}  // namespace ridge

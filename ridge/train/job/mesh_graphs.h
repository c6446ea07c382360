// MeshGraphs: the graphs of a job -> those that a rank of a mesh runs.
//
//   MeshGraphs parts = *PartitionGraphs(graphs, mesh, sharding);
//   PlanProgram(model, parts.graphs, kernels, ...); PlaceOnMesh(place, parts.variables, program);
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/named_graph.h"
#include "ridge/partition/layouts.h"
#include "ridge/partition/partition.h"
#include "ridge/partition/state_bytes.h"
#include "ridge/plan/program.h"

namespace ridge {

// The collectives of one step, those of equal operator and axis together.
struct MeshStep {
  std::string name;  // "train", or "micro" and "update"; "eval"
  std::vector<CollectiveSum> collectives;
};

struct MeshGraphs {
  std::vector<NamedGraph> graphs;  // in normal form and local; nothing is recomputed
  std::vector<MeshStep> steps;
  int64_t pairs = 0;                               // of weights that axis t shares
  StateBytes state, one_device;                    // of a rank, and without a mesh
  std::map<std::string, WholeVariable> variables;  // of which ranks have parts
};

// The first graph says where variables lie.  Rows of outputs that have one for each sample stay
// with the ranks that have the samples; other outputs are whole.
// Fails as NormalForm, MakeLayout and Partition do.
Result<MeshGraphs> PartitionGraphs(std::vector<NamedGraph> graphs, const Mesh& mesh,
                                   const Sharding& sharding);

// The program is that of the rank at this place.
void PlaceOnMesh(const MeshPlace& place, const std::map<std::string, WholeVariable>& variables,
                 Program& program);

}  // namespace ridge

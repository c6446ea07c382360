// The planner: Graphs, KernelQuery, CostModel -> Program.
//
// One loop over each graph picks kernels and layouts (reorders between layouts become nodes, shared
// by all readers); then values get live ranges and offsets.  Pure and deterministic: equal input,
// equal Program.  plan/ runs no kernel.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/named_graph.h"
#include "ridge/plan/parallel_regions.h"
#include "ridge/plan/program.h"

namespace ridge {

struct PlanOptions {
  bool in_place = true;  // --passes=-inplace
  bool layout = true;    // --passes=-layout: row-major only
  bool double_buffer_inputs = true;
  // Measured seconds by KernelChoice::key, which choose between kernels.  nullptr: the nominal
  // device chooses.  Not owned.
  const std::map<std::string, double>* kernel_s = nullptr;
  InterOp inter_op = {};          // --inter-op
  bool overlap_exchange = false;  // of gradients between ranks (plan/tree_sums.h)
  // The states of a micro batch of a pipeline, and how many copies of each there are.
  std::map<std::string, int64_t> copies = {};
  std::vector<Purpose> on_host = {};  // large variables of these purposes rest on the host
  double host_link_bytes_per_s = 0;   // Program::host_link_bytes_per_s
  // Parameters that rest on the host, whose kernels read and update them (plan/host_nodes.h).
  // REQUIRES: none, or KernelQuery::host() is there.
  std::vector<std::string> host_parameters = {};
};

// `kernels` decides, by its nominal costs; `measured` predicts times (cost/times.h) and changes
// nothing else.
// Variables of the same name are one persistent value; their types and initial values must agree.
// Fails with kUnsupported when no kernel can run a node: the message lists the refusals.
Result<Program> PlanProgram(const std::string& model, const std::vector<NamedGraph>& graphs,
                            KernelQuery& kernels, const CostModel& measured,
                            const PlanOptions& options);

}  // namespace ridge

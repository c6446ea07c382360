// Where `ridge plan FILE.onnx --loss mse:y --batch 2` spends its time: one JSON object of seconds a
// phase, and of resident MiB after import.  For bench/onnx_import.py; without a file it does
// nothing, so that `make bench` can run it.
//
//   plan_phases_bench FILE
#include <fmt/format.h>

#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/cpu/host_rules.h"
#include "ridge/core/process.h"
#include "ridge/lower/pipeline.h"
#include "ridge/plan/lower.h"
#include "ridge/plan/memory/check_placement.h"
#include "ridge/plan/memory/placement.h"
#include "ridge/runtime/executor.h"
#include "ridge/runtime/rehearsal.h"
#include "ridge/train/load/forward.h"

namespace ridge {
namespace {

class Phases {
 public:
  void End(const char* name) {
    const double now = MonotonicSeconds();
    parts_ += fmt::format("{}\"{}\": {:.4f}", parts_.empty() ? "" : ", ", name, now - begin_);
    begin_ = now;
  }
  void Add(const char* name, double value) {
    parts_ += fmt::format(", \"{}\": {:.1f}", name, value);
  }
  std::string Json() const { return "{" + parts_ + "}"; }

 private:
  std::string parts_;
  double begin_ = MonotonicSeconds();
};

Result<Graph> Import(const std::string& file, Phases& phases) {
  TrainOptions options;
  options.model = file;
  options.batch = 2;
  options.loss = "mse:y";
  RIDGE_ASSIGN_OR_RETURN(Forward forward, LoadForward(options));
  phases.End("open and import");
  phases.Add("peak MiB of import",
             static_cast<double>(ReadProcessMemory().peak_resident_bytes) / (1 << 20));
  return std::move(forward.graph);
}

Result<std::vector<NamedGraph>> Differentiate(const Graph& forward, Phases& phases) {
  TrainingGraphOptions options;
  options.optimizer.name = "adam";
  RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> graphs, BuildTrainingGraphs(forward, options));
  phases.End("differentiate");
  RIDGE_ASSIGN_OR_RETURN(NamedGraph eval, BuildEvalGraph(forward));
  graphs.push_back(std::move(eval));
  phases.End("eval graph");
  return graphs;
}

Status Simplify(std::vector<NamedGraph>& graphs, Phases& phases) {
  for (const PassInfo& pass : AllPasses()) {
    if (pass.run == nullptr) continue;
    for (NamedGraph& named : graphs) {
      RIDGE_ASSIGN_OR_RETURN(
          named.graph, RunPasses(std::move(named.graph), PassSelection{{pass.name}}, HostRules()));
    }
    phases.End(pass.name);
  }
  return Status();
}

// The parts of PlanProgram that can be called alone, then all of it.
Result<Program> Plan(const std::vector<NamedGraph>& graphs, Backend& backend, Phases& phases) {
  PersistentRegion persistent;
  std::vector<StepPlan> steps;
  const std::set<std::string> host_variables;
  for (const NamedGraph& named : graphs) {
    const std::vector<bool> host_nodes(named.graph.nodes().size(), false);
    RIDGE_ASSIGN_OR_RETURN(
        LoweredGraph lowered,
        LowerGraph(named, backend, PlanOptions(), persistent, {host_variables, host_nodes}));
    steps.push_back(std::move(lowered.step));
  }
  phases.End("lower");
  Program placed;
  placed.memory = backend.memory();
  placed.persistent = std::move(persistent.values);
  for (StepPlan& step : steps) ShareInPlace(placed.memory, step);
  phases.End("in place");
  for (StepPlan& step : steps) PlaceValues(placed, step);
  phases.End("offsets");
  RIDGE_ASSIGN_OR_RETURN(Program program,
                         PlanProgram("bench", graphs, backend, backend.nominal(), PlanOptions()));
  phases.End("plan (all)");
  RIDGE_RETURN_IF_ERROR(CheckPlacement(program));
  phases.End("check");
  return program;
}

Status Run(const std::string& file) {
  Phases phases;
  RIDGE_ASSIGN_OR_RETURN(const Graph forward, Import(file, phases));
  RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> graphs, Differentiate(forward, phases));
  RIDGE_RETURN_IF_ERROR(Simplify(graphs, phases));
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend, MakeCpuBackend(/*threads=*/1));
  RIDGE_ASSIGN_OR_RETURN(Program program, Plan(graphs, *backend, phases));
  const size_t nodes = program.steps[0].nodes.size();
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                         Executor::Create(std::move(program), *backend));
  phases.End("kernels");
  RIDGE_RETURN_IF_ERROR(Rehearse(*executor, backend->nominal(), 0.1).status());
  phases.End("rehearse");
  phases.Add("planned nodes", static_cast<double>(nodes));
  fmt::print("{}\n", phases.Json());
  return Status();
}

}  // namespace
}  // namespace ridge

int main(int argc, char** argv) {
  if (argc < 2) return 0;
  const ridge::Status status = ridge::Run(argv[1]);
  if (status.ok()) return 0;
  fmt::print(stderr, "{}\n", status.message());
  return 1;
}

#include "tests/generate/backend_run.h"

#include <cstring>

#include "ridge/runtime/executor.h"
#include "ridge/train/job/job.h"
#include "ridge/train/loop/run_once.h"

namespace ridge {
namespace {

Status Fill(Executor& executor, const NamedTensors& leaves) {
  const std::vector<PersistentValue>& persistent = executor.program().persistent;
  for (size_t i = 0; i < persistent.size(); ++i) {
    const PersistentValue& value = persistent[i];
    const auto found = leaves.find(value.name);
    if (found == leaves.end() || (value.kind == ValueKind::kInput && value.slot != 0)) continue;
    RIDGE_CHECK(found->second.type() == value.type, value.name);
    RIDGE_RETURN_IF_ERROR(executor.transfers().Write(i, found->second.data()));
  }
  return Status();
}

Tensor Copy(const TensorType& type, const void* from) {
  Tensor copy(type);
  if (type.bytes() > 0) std::memcpy(copy.mutable_data(), from, static_cast<size_t>(type.bytes()));
  return copy;
}

}  // namespace

Result<NamedTensors> RunOutputs(const Graph& graph, const NamedTensors& leaves,
                                const Machine& machine) {
  RIDGE_ASSIGN_OR_RETURN(auto values, RunGraph(graph, leaves, /*seed=*/0, machine));
  NamedTensors outputs;
  for (auto& [name, tensor] : values) outputs[name] = std::move(tensor);
  return outputs;
}

Result<NamedTensors> RunStep(const Graph& step, const NamedTensors& leaves,
                             const std::string& passes, const Machine& machine) {
  std::vector<NamedGraph> graphs = {NamedGraph{"train", step}};
  RIDGE_ASSIGN_OR_RETURN(Program program,
                         PlanGraphs(step.name, std::move(graphs), passes, DType::kF32, machine));
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                         Executor::Create(std::move(program), *machine.backend));
  RIDGE_RETURN_IF_ERROR(executor->transfers().Initialize(/*seed=*/0));
  RIDGE_RETURN_IF_ERROR(Fill(*executor, leaves));
  RIDGE_RETURN_IF_ERROR(executor->Run(/*step=*/0, /*slot=*/0));
  NamedTensors after;
  const std::vector<PersistentValue>& persistent = executor->program().persistent;
  for (const GraphUpdate& update : step.updates()) {
    const ValueInfo& variable = step.value(update.variable);
    if (variable.kind != ValueKind::kParameter) continue;
    for (size_t i = 0; i < persistent.size(); ++i) {
      if (persistent[i].name != variable.name) continue;
      RIDGE_ASSIGN_OR_RETURN(const void* data, executor->transfers().Read(i));
      after[variable.name] = Copy(persistent[i].type, data);
    }
  }
  return after;
}

}  // namespace ridge

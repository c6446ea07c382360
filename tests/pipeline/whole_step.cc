#include "tests/pipeline/whole_step.h"

#include <fmt/format.h>

#include "ridge/learn/random_inputs.h"
#include "tests/partition/compare.h"

namespace ridge {
namespace {

// Of each micro batch of an update.
std::vector<NamedNumbers> MicroInputs(const WholeStep& step, int micros, int update) {
  std::vector<NamedNumbers> inputs;
  for (int i = 0; i < micros; ++i)
    inputs.push_back(
        NumbersOf(RandomInputs(step.micro, static_cast<uint64_t>(100 * update + i + 1))));
  return inputs;
}

NamedNumbers InputsOfUpdate(const WholeStep& step, int update) {
  NamedNumbers inputs = NumbersOf(RandomInputs(step.update, 1));
  if (inputs.contains("ridge.lr")) inputs["ridge.lr"] = {0.01};
  if (inputs.contains("ridge.step")) inputs["ridge.step"] = {static_cast<double>(update + 1)};
  return inputs;
}

// The variables that both graphs have.
Status CopyVariables(const Graph& from_graph, const VirtualDevices& from, const Graph& to_graph,
                     VirtualDevices& to) {
  for (ValueKind kind : {ValueKind::kParameter, ValueKind::kState}) {
    for (ValueId id : from_graph.ValuesOfKind(kind)) {
      const ValueId same = to_graph.FindValue(from_graph.value(id).name);
      if (same == kNoValue) continue;
      RIDGE_ASSIGN_OR_RETURN(const std::vector<double> numbers, from.Variable(id));
      to.SetVariable(same, numbers);
    }
  }
  return Status();
}

Status AddVariables(const Graph& graph, const VirtualDevices& device, NamedNumbers& to) {
  for (ValueKind kind : {ValueKind::kParameter, ValueKind::kState}) {
    for (ValueId id : graph.ValuesOfKind(kind)) {
      RIDGE_ASSIGN_OR_RETURN(to[graph.value(id).name], device.Variable(id));
    }
  }
  return Status();
}

}  // namespace

Result<WholeStep> MakeWholeStep(const Graph& forward, int micros, const StepOptions& options) {
  TrainingGraphOptions training;
  training.optimizer.name = options.optimizer;
  if (options.optimizer == "sgd") training.optimizer.momentum = 0.9;
  training.clip_norm = options.clip_norm;
  training.average_decay = options.average_decay;
  training.accumulate = micros;
  RIDGE_ASSIGN_OR_RETURN(std::vector<NamedGraph> graphs, BuildTrainingGraphs(forward, training));
  WholeStep step{std::move(graphs.at(0).graph), std::move(graphs.at(1).graph), {}};
  RIDGE_ASSIGN_OR_RETURN(step.untied, UntieWeights(step.micro, step.update));
  return step;
}

Result<StepResults> RunWhole(const WholeStep& step, int micros, int updates) {
  const Partitioned micro_parts = OnOneDevice(step.micro), update_parts = OnOneDevice(step.update);
  RIDGE_ASSIGN_OR_RETURN(VirtualDevices micro, VirtualDevices::Create(step.micro, micro_parts));
  RIDGE_ASSIGN_OR_RETURN(VirtualDevices update, VirtualDevices::Create(step.update, update_parts));
  StepResults results;
  for (int u = 0; u < updates; ++u) {
    for (const NamedNumbers& inputs : MicroInputs(step, micros, u)) {
      RIDGE_ASSIGN_OR_RETURN(NamedNumbers outputs, micro.Step(inputs));
      results.outputs.push_back(std::move(outputs));
    }
    RIDGE_RETURN_IF_ERROR(CopyVariables(step.micro, micro, step.update, update));
    RIDGE_ASSIGN_OR_RETURN(NamedNumbers outputs, update.Step(InputsOfUpdate(step, u)));
    results.outputs.push_back(std::move(outputs));
    RIDGE_RETURN_IF_ERROR(CopyVariables(step.update, update, step.micro, micro));
  }
  RIDGE_RETURN_IF_ERROR(AddVariables(step.micro, micro, results.variables));
  RIDGE_RETURN_IF_ERROR(AddVariables(step.update, update, results.variables));
  return results;
}

Result<StepResults> RunStages(const WholeStep& step, const std::vector<int>& borders,
                              const PipelineSchedule& schedule, int updates) {
  RIDGE_ASSIGN_OR_RETURN(std::vector<PipelineStage> stages,
                         MakeStages(step.untied, borders, schedule.separates_weights));
  RIDGE_ASSIGN_OR_RETURN(VirtualStages devices, VirtualStages::Create(std::move(stages), schedule));
  StepResults results;
  for (int u = 0; u < updates; ++u) {
    RIDGE_ASSIGN_OR_RETURN(
        std::vector<NamedNumbers> outputs,
        devices.Step(MicroInputs(step, schedule.micros, u), InputsOfUpdate(step, u)));
    for (NamedNumbers& numbers : outputs) results.outputs.push_back(std::move(numbers));
  }
  results.variables = devices.Variables();
  return results;
}

std::string CompareResults(const StepResults& got, const StepResults& want) {
  if (got.outputs.size() != want.outputs.size()) return "another number of outputs";
  for (size_t i = 0; i < want.outputs.size(); ++i) {
    if (got.outputs[i].size() != want.outputs[i].size())
      return fmt::format("{} outputs in run {}, not {}", got.outputs[i].size(), i,
                         want.outputs[i].size());
    for (const auto& [name, numbers] : want.outputs[i]) {
      const std::string wrong = CompareNumbers(got.outputs[i].at(name), numbers);
      if (!wrong.empty()) return fmt::format("run {}: output '{}' {}", i, name, wrong);
    }
  }
  for (const auto& [name, numbers] : want.variables) {
    if (!got.variables.contains(name)) return fmt::format("variable '{}' is missing", name);
    const std::string wrong = CompareNumbers(got.variables.at(name), numbers);
    if (!wrong.empty()) return fmt::format("variable '{}' {}", name, wrong);
  }
  return "";
}

}  // namespace ridge

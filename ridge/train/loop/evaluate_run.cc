#include "ridge/train/loop/evaluate_run.h"

#include <fmt/format.h>

#include "ridge/learn/averages.h"
#include "ridge/train/job/job.h"
#include "ridge/train/load/forward.h"
#include "ridge/train/store/run.h"

namespace ridge {

Result<EvalOutcome> EvaluateRun(const EvalRequest& request, const Machine& machine) {
  if (request.run.empty() && request.model.model.empty())
    return InvalidArgument("eval: no run given");
  std::optional<Run> run;
  TrainOptions options = request.model;
  if (!request.run.empty()) {
    RIDGE_ASSIGN_OR_RETURN(run, Run::Open(request.run));
    options = run->options();
    options.weights.clear();  // the checkpoint replaces them
    options.weights_skip.clear();
  }
  options.data = request.data;
  options.validation.clear();  // all samples count
  RIDGE_ASSIGN_OR_RETURN(const Forward loaded_forward, LoadForward(options, request.run));
  const Graph& forward = loaded_forward.graph;
  const ForwardInfo& facts = loaded_forward.facts;
  RIDGE_ASSIGN_OR_RETURN(EvalData data, OpenEvalData(options, forward, facts, loaded_forward.data,
                                                     loaded_forward.preprocessing));
  RIDGE_ASSIGN_OR_RETURN(NamedGraph graph, BuildEvalGraph(forward));
  if (run && options.ema > 0) graph.graph = ReadAverages(std::move(graph.graph));
  std::vector<NamedGraph> graphs = {std::move(graph)};
  RIDGE_ASSIGN_OR_RETURN(const DType operands, ProductOperands(options.precision, machine));
  RIDGE_ASSIGN_OR_RETURN(std::vector<std::string> placed, PlacedOn(machine, options, forward));
  RIDGE_ASSIGN_OR_RETURN(Program program,
                         PlanGraphs(options.model, std::move(graphs), options.passes, operands,
                                    machine, Offload::kNone, std::move(placed)));
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                         Executor::Create(std::move(program), *machine.backend));
  // Constants, and parameters without gradients.
  RIDGE_RETURN_IF_ERROR(executor->transfers().Initialize(options.seed));
  EvalOutcome outcome;
  if (loaded_forward.data) outcome.warnings = loaded_forward.data->notes;
  if (run) {
    RIDGE_ASSIGN_OR_RETURN(
        const LoadedCheckpoint loaded,
        run->checkpoints().Load(request.checkpoint, CollectTensors(*executor), LoadMode::kWeights));
    outcome.step = loaded.state.step;
    outcome.warnings.insert(outcome.warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
  }
  const Preprocessing* names = loaded_forward.data ? loaded_forward.data->preprocessing.get()
                                                   : loaded_forward.preprocessing.get();
  Evaluator evaluator(*executor, data.source, MakeBatchSpec(forward, facts, /*with_weight=*/true),
                      SubjectOf(forward, facts, names), options.batch, ReadWorkers(options),
                      data.bad_records);
  RIDGE_ASSIGN_OR_RETURN(const std::optional<EvalResult> result, evaluator.Run());
  RIDGE_CHECK(result.has_value(), "nobody asks an evaluation alone to stop");
  outcome.result = *result;
  RIDGE_ASSIGN_OR_RETURN(outcome.record, evaluator.Record(request.data, outcome.step));
  for (const BadRecord& record : data.bad_records->List())
    outcome.warnings.push_back(record.origin + ": skipped: " + record.reason);
  return outcome;
}

}  // namespace ridge

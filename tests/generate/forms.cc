#include "tests/generate/forms.h"

#include "ridge/backend/cpu/host_rules.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/learn/training_graph.h"
#include "ridge/lower/pipeline.h"
#include "ridge/use/gradients.h"

namespace ridge {

Result<Graph> GradForm(const Graph& forward) {
  return GraphWithGradients(forward, {"loss", forward.FindOutput("loss")});
}

Result<Graph> TrainForm(const Graph& forward, const std::string& passes, bool imported) {
  Graph graph = forward;
  if (imported) {
    RIDGE_ASSIGN_OR_RETURN(graph, RecognizePatterns(std::move(graph)));
    RIDGE_ASSIGN_OR_RETURN(graph, RecognizeAttention(graph));
  }
  RIDGE_ASSIGN_OR_RETURN(const PassSelection selection, ParsePassSpec(passes));
  RIDGE_ASSIGN_OR_RETURN(graph, RunPasses(std::move(graph), ForwardPasses(selection), HostRules()));
  TrainingGraphOptions options;
  options.optimizer.name = "sgd";
  RIDGE_ASSIGN_OR_RETURN(auto graphs, BuildTrainingGraphs(graph, options));
  return std::move(graphs.at(0).graph);
}

NamedTensors GradientsOfStep(const NamedTensors& before, const NamedTensors& after) {
  NamedTensors gradients;
  for (const auto& [name, stepped] : after) {
    const Tensor& start = before.at(name);
    Tensor gradient({DType::kF64, start.type().dims});
    for (int64_t i = 0; i < start.elements(); ++i)
      gradient.as_mutable<double>()[i] = (start.at(i) - stepped.at(i)) / kTrainRate;
    gradients[name] = std::move(gradient);
  }
  return gradients;
}

void AddStepInputs(const Graph& graph, NamedTensors& leaves) {
  if (const ValueId lr = graph.FindValue(kLrInput); lr != kNoValue)
    leaves[kLrInput] = Tensor::Scalar(graph.type(lr).dtype, kTrainRate);
  leaves[kStepInput] = Tensor::Scalar(DType::kI64, 1);
}

}  // namespace ridge

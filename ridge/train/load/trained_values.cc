#include "ridge/train/load/trained_values.h"

#include "ridge/learn/averages.h"
#include "ridge/learn/frozen_weights.h"
#include "ridge/learn/lora.h"
#include "ridge/train/load/model_source.h"
#include "ridge/train/store/run.h"

namespace ridge {
namespace {

// The run's model without adapters, at the run's dimensions.
Result<Graph> PlainModel(const Run& run) {
  ModelRequest request;
  request.model = run.path();
  request.batch = run.options().batch;
  RIDGE_ASSIGN_OR_RETURN(request.dims, ParseDims(run.options().dims));
  if (IsOnnxFile(run.ModelSource())) {
    RIDGE_ASSIGN_OR_RETURN(auto of_data, ParseDims(run.options().data_dims));
    request.dims.merge(of_data);
  }
  return LoadModel(request);
}

}  // namespace

Result<std::map<std::string, Tensor>> TrainedValues(const std::string& model,
                                                    const std::string& checkpoint,
                                                    std::vector<std::string>* warnings) {
  RIDGE_ASSIGN_OR_RETURN(auto tensors, TrainedTensors(model, checkpoint, warnings));
  if (!Run::Exists(model)) return tensors;
  RIDGE_ASSIGN_OR_RETURN(const Run run, Run::Open(model));
  TakeAverages(tensors);
  const TrainOptions& options = run.options();
  if (options.lora.empty() && options.frozen_weights.empty()) return tensors;
  RIDGE_ASSIGN_OR_RETURN(const Graph graph, PlainModel(run));
  RIDGE_RETURN_IF_ERROR(DequantizeFrozen(graph, tensors));
  if (options.lora.empty()) return tensors;
  RIDGE_ASSIGN_OR_RETURN(const LoraOptions lora, ParseLora(options.lora));
  RIDGE_RETURN_IF_ERROR(MergeLora(graph, lora, tensors));
  return tensors;
}

}  // namespace ridge

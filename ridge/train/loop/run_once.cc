#include "ridge/train/loop/run_once.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "ridge/core/tensor_file.h"
#include "ridge/train/job/job.h"
#include "ridge/train/store/run.h"

namespace ridge {
namespace {

// The plan has no slots for inputs that no node reads.
Status Fill(const std::map<std::string, Tensor>& given, Executor& executor) {
  const std::vector<PersistentValue>& persistent = executor.program().persistent;
  for (size_t i = 0; i < persistent.size(); ++i) {
    const PersistentValue& value = persistent[i];
    if (value.kind == ValueKind::kInput && value.slot != 0) continue;
    const auto found = given.find(value.name);
    if (found == given.end()) {
      if (value.kind != ValueKind::kInput) continue;
      return InvalidArgument(
          fmt::format("input '{}' {} is not given", value.name, TypeToString(value.type)));
    }
    Tensor tensor = found->second;
    // Parameters are trained in f32 whatever the model computes in.
    if (value.kind != ValueKind::kInput) tensor = WithFloatType(tensor, value.type.dtype);
    if (tensor.type() != value.type) {
      return InvalidArgument(fmt::format("'{}' is given as {}; the graph has {}", value.name,
                                         TypeToString(tensor.type()), TypeToString(value.type)));
    }
    RIDGE_RETURN_IF_ERROR(executor.transfers().Write(i, tensor.data()));
  }
  return Status();
}

Result<std::vector<NamedTensor>> CopyOutputs(Executor& executor, const Graph& graph, int step) {
  std::vector<NamedTensor> outputs;
  for (const GraphOutput& output : graph.outputs()) {
    Tensor tensor(executor.OutputType(step, output.name));
    RIDGE_ASSIGN_OR_RETURN(const void* data, executor.transfers().Output(step, output.name));
    if (tensor.bytes() > 0)
      std::memcpy(tensor.mutable_data(), data, static_cast<size_t>(tensor.bytes()));
    outputs.emplace_back(output.name, std::move(tensor));
  }
  return outputs;
}

// Whether `to` represents every value of `from`, up to rounding of floats.
bool Converts(DType from, DType to) {
  if (from == to || (IsFloat(from) && IsFloat(to))) return true;
  const bool narrow = from == DType::kBool || (IsInteger(from) && IntegerBits(from) <= 32);
  return narrow && (to == DType::kI64 || to == DType::kI32 || IsFloat(to));
}

}  // namespace

Result<std::unique_ptr<Executor>> PrepareGraph(const Graph& graph,
                                               const std::map<std::string, Tensor>& given,
                                               uint64_t seed, const Machine& machine) {
  std::vector<NamedGraph> graphs = {NamedGraph{"once", graph}};
  RIDGE_ASSIGN_OR_RETURN(Program program, PlanGraphs(graph.name, std::move(graphs), /*passes=*/"",
                                                     DType::kF32, machine));
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor,
                         Executor::Create(std::move(program), *machine.backend));
  RIDGE_RETURN_IF_ERROR(executor->transfers().Initialize(seed));
  RIDGE_RETURN_IF_ERROR(Fill(given, *executor));
  return executor;
}

Result<std::vector<NamedTensor>> RunGraph(const Graph& graph,
                                          const std::map<std::string, Tensor>& given, uint64_t seed,
                                          const Machine& machine) {
  Graph pure = graph;
  pure.ClearUpdates();
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor,
                         PrepareGraph(pure, given, seed, machine));
  RIDGE_RETURN_IF_ERROR(executor->Run(/*step=*/0, /*slot=*/0));
  return CopyOutputs(*executor, graph, /*step=*/0);
}

Result<Tensor> ConvertInput(const Tensor& tensor, const ValueInfo& input, const std::string& verb) {
  const TensorType& from = tensor.type();
  if (from == input.type) return tensor;
  if (from.dims != input.type.dims || !Converts(from.dtype, input.type.dtype)) {
    return InvalidArgument(fmt::format("{}: input '{}' is {}; the graph takes {}", verb, input.name,
                                       TypeToString(from), TypeToString(input.type)));
  }
  return Converted(tensor, input.type.dtype);
}

Tensor FirstDraws(uint64_t seed) {
  return Tensor::FromInts({3}, std::vector<int64_t>{static_cast<int64_t>(seed), 0, 0});
}

Tensor WithFloatType(const Tensor& tensor, DType to) {
  const DType from = tensor.type().dtype;
  return from == to || !IsFloat(from) || !IsFloat(to) ? tensor : Converted(tensor, to);
}

Status RefuseWeightsOfRun(const std::string& verb, const std::string& model,
                          const std::string& weights) {
  if (weights.empty() || !Run::Exists(model)) return Status();
  return InvalidArgument(
      fmt::format("{}: {} is a run, which has trained weights; --weights is for other "
                  "models. hint: leave it out",
                  verb, model));
}

}  // namespace ridge

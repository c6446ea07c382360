// RunGraph: a graph's outputs for given inputs and variables, computed once.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ridge/data/memory_source.h"
#include "ridge/graph/graph.h"
#include "ridge/runtime/executor.h"
#include "ridge/train/options/machine.h"

namespace ridge {

// `given` holds every input, and variables; those not given start as they do in training with
// `seed`.  Types must be the graph's, but for variables of another float type, which are converted.
// Updates are not applied.  Plans and runs on the machine's backend; the outputs come in the
// graph's order. Fails with kInvalidArgument for an input that is missing or has another type.
Result<std::vector<NamedTensor>> RunGraph(const Graph& graph,
                                          const std::map<std::string, Tensor>& given, uint64_t seed,
                                          const Machine& machine);

// What RunGraph runs, before it runs: the only step of the executor's program, on slot 0.
Result<std::unique_ptr<Executor>> PrepareGraph(const Graph& graph,
                                               const std::map<std::string, Tensor>& given,
                                               uint64_t seed, const Machine& machine);

// The tensor as the input wants it: another element type is converted when nothing but rounding is
// lost (f64 to f32, i32 to i64).  Fails with kInvalidArgument; `verb` starts the message.
Result<Tensor> ConvertInput(const Tensor& tensor, const ValueInfo& input, const std::string& verb);

// The contents of kRngInput: what draws random numbers draws those of a training's first step.
Tensor FirstDraws(uint64_t seed);

// The tensor itself, or converted when both types are floats.
Tensor WithFloatType(const Tensor& tensor, DType to);

// A run has its trained values: fails with kInvalidArgument when `weights` (--weights) is given
// beside it.
Status RefuseWeightsOfRun(const std::string& verb, const std::string& model,
                          const std::string& weights);

// The tensors of a run's checkpoint by name: parameters, statistics and optimizer state, mapped
// from its files.  `which` and `warnings` as FindCheckpoint has them, and it fails as that does.
Result<std::map<std::string, Tensor>> LoadCheckpointTensors(
    const std::string& run, const std::string& which, std::vector<std::string>* warnings = nullptr);

}  // namespace ridge

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

// `given` holds all inputs, and variables; the others are initialized as in training with `seed`.
// Types must be the graph's, except that variables of another float type are converted.  Updates
// are not applied.  Plans and runs on the machine's backend; outputs are in the graph's order.
// Fails with kInvalidArgument for an input that is missing or has another type.
Result<std::vector<NamedTensor>> RunGraph(const Graph& graph,
                                          const std::map<std::string, Tensor>& given, uint64_t seed,
                                          const Machine& machine);

// Prepares RunGraph: the executor's program has one step, to be run on slot 0.  A run applies the
// graph's updates, if it has any.
Result<std::unique_ptr<Executor>> PrepareGraph(const Graph& graph,
                                               const std::map<std::string, Tensor>& given,
                                               uint64_t seed, const Machine& machine);

// The tensor in the input's type: converts the element type if that only rounds (f64 to f32, i32 to
// i64).  Fails with kInvalidArgument; `verb` begins the message.
Result<Tensor> ConvertInput(const Tensor& tensor, const ValueInfo& input, const std::string& verb);

// The contents of kRngInput that make random operators draw as in a training's first step.
Tensor FirstDraws(uint64_t seed);

// The tensor itself, or converted when both types are floats.
Tensor WithFloatType(const Tensor& tensor, DType to);

// Fails with kInvalidArgument when `weights` (--weights) is given for a run, which has its own
// values.
Status RefuseWeightsOfRun(const std::string& verb, const std::string& model,
                          const std::string& weights);

}  // namespace ridge

// Gradients as a backend computes them: planned and executed.
#pragma once
#include "ridge/train/options/machine.h"
#include "tests/generate/leaves.h"

namespace ridge {

// The outputs of a graph without updates, by name, as `ridge grad` runs it.
Result<NamedTensors> RunOutputs(const Graph& graph, const NamedTensors& leaves,
                                const Machine& machine);

// The parameters behind one step of TrainForm's graph, by name, as `ridge train` runs it.
Result<NamedTensors> RunStep(const Graph& step, const NamedTensors& leaves,
                             const std::string& passes, const Machine& machine);

}  // namespace ridge

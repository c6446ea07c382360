// The forms in which a forward graph's gradients are computed.  In each the outputs are gradients
// under the names of what they belong to.
#pragma once
#include <string>

#include "tests/generate/leaves.h"

namespace ridge {

// As `ridge grad`: of every float input and parameter; passes not yet run.
Result<Graph> GradForm(const Graph& forward);

// As `ridge train`: rewrites before differentiation, gradients of what is trained, one step of
// gradient descent at rate kTrainRate.  With `imported` also what reading an ONNX file rewrites.
inline constexpr double kTrainRate = 64;
Result<Graph> TrainForm(const Graph& forward, const std::string& passes, bool imported);

// The gradients of a run of TrainForm: how far each parameter went.  `after` by name.
NamedTensors GradientsOfStep(const NamedTensors& before, const NamedTensors& after);

// Leaves of `graph` that the forward graph has not: the rate and the step.
void AddStepInputs(const Graph& graph, NamedTensors& leaves);

}  // namespace ridge

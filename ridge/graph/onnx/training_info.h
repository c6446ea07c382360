// TrainingInfoProto: an ONNX file that carries its own training step.
//
// The step is the file's graph followed by the algorithm's: loss, Gradient, an optimizer.  What
// `update_binding` names are variables; they hold the bound values from the next step on.
#pragma once
#include "ridge/graph/onnx/import.h"

namespace ridge {

// Whether the file carries a training step.
bool HasTrainingStep(const OnnxModel& model);

// Inputs are those of the graph and of the algorithm.  Outputs are those of both, and `loss`: the
// algorithm's first output of one float.  Updated float initializers of the graph are parameters,
// all others that are updated states (role kOptimizer); they start with the file's contents, or
// with those that `initialization` makes.  Nothing else is trained: the options' patterns and
// all_parameters say nothing here.
// Fails with kInvalidModel when there is no step, or it breaks ONNX's rules; kUnsupported for more
// than one step in a file.
Result<Graph> ImportTrainingStep(const OnnxModel& model, const OnnxImportOptions& options);

}  // namespace ridge

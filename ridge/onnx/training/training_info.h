// TrainingInfoProto: an ONNX file that carries its own training step.
//
// The step is the file's graph followed by the algorithm's: loss, Gradient, an optimizer.  What
// `update_binding` names are variables; they hold the bound values from the next step on.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/onnx/import/import.h"

namespace ridge {

// Whether the file carries a training step.
bool HasTrainingStep(const OnnxModel& model);

// What whoever runs the step gives it beside data: the inputs of the algorithm that its optimizers
// read as learning rate and count of updates get these names, f32[] or f64[] and i64[].
struct OnnxStepInputs {
  std::string rate;   // "": it keeps the file's name and type
  std::string count;  // 1 at the first update, where ONNX has 0; "": the same
};

// Inputs of the algorithm that the graph does not have, without learning rate and count.
std::vector<OnnxValueInfo> TrainingStepInputs(const OnnxModel& model);

// The learning rate, where all optimizers read one number that the file holds and no update
// changes.
std::optional<double> TrainingStepRate(const OnnxModel& model);

// Inputs are those of the graph and of the algorithm.  Outputs are those of both, and `loss`: the
// algorithm's first output of one float, else what its first Gradient derives.  Float initializers
// of the graph that are updated and by which a Gradient derives (without a Gradient: all that are
// updated) are parameters, the graph's other updated floats statistics, all else that is updated
// optimizer states; they start with the file's contents, or with those that `initialization` makes.
// Nothing else is trained: the options' patterns and all_parameters say nothing here.
// Fails with kInvalidModel when there is no step, or it breaks ONNX's rules; kUnsupported for more
// than one step in a file.
Result<Graph> ImportTrainingStep(const OnnxModel& model, const OnnxImportOptions& options,
                                 const OnnxStepInputs& names = {});

}  // namespace ridge

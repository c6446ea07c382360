// LoadLengthForms: the shorter forms of a model for `--bucket`.
#pragma once
#include <string>
#include <vector>

#include "ridge/learn/length_form.h"
#include "ridge/train/load/forward.h"

namespace ridge {

// Shortest first; empty without options.bucket.  A form's batch holds as many tokens as
// options.batch samples of the whole length do.  `model` as LoadForward takes it.
// Fails as LoadForward does, with kUnsupported for models that cannot be shortened, and with
// kInvalidArgument where a length is above that of the data, or none is below.
Result<std::vector<LengthForm>> LoadLengthForms(const TrainOptions& options, const Forward& whole,
                                                const std::string& model = "");

}  // namespace ridge

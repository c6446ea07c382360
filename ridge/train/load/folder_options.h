// TakeModelFolder: options that name a model's public folder, as those that it stands for.
#pragma once
#include <string>
#include <vector>

#include "ridge/train/options/options.h"

namespace ridge {

// options.model, if it is a ModelFolder, becomes its spec; weights and weights_skip become the
// folder's unless a file of weights is given; texts without a tokenizer get the folder's.  Other
// options stay as they are.  `notes` may be null.  Fails as OpenModelFolder does.
Status TakeModelFolder(TrainOptions& options, std::vector<std::string>* notes = nullptr);

}  // namespace ridge

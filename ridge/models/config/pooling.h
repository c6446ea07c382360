// FindPooling: how sentence-transformers pools the tokens of a model that it keeps.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

// "mean" or "first", by FOLDER/modules.json and the Pooling module's own config.json; nothing
// without them.  `notes` get the modules that are left out.  Fails with kUnsupported for another
// pooling, with kInvalidData for files.
Result<std::optional<std::string>> FindPooling(const std::string& folder,
                                               std::vector<std::string>& notes);

}  // namespace ridge

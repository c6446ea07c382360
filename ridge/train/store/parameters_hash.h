// parameters_sha256 of summary.json.
#pragma once
#include <string>

#include "ridge/train/store/checkpoint.h"

namespace ridge {

// SHA-256 over the parameters' row-major little-endian bytes, names in byte order, then the
// statistics (not the optimizer's state) the same way.
Result<std::string> HashParameters(Executor& executor, WholeVariables* wholes = nullptr);

}  // namespace ridge

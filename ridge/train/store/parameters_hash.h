// parameters_sha256 of summary.json.
#pragma once
#include <string>

#include "ridge/train/store/checkpoint.h"

namespace ridge {

// SHA-256 over the parameters' row-major little-endian bytes, names in byte order, then the
// statistics (not the optimizer's state) the same way.  Of variables of which ranks
// have parts (`wholes`) all of them call it, and the first one puts them together.
Result<std::string> HashParameters(Executor& executor, WholeVariables* wholes = nullptr,
                                   Communicator* communicator = nullptr);

}  // namespace ridge

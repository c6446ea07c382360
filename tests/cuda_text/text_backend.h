// The kernels whose text we write, on the host: a backend for checks of operators.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ridge/backend/backend.h"
#include "tests/cuda_text/text_program.h"

namespace ridge::cuda_text {

// Kernels run on exact copies of their operands, so that AddressSanitizer sees each byte beside
// them; threads of a block run forward the first time, then backward, and so on.  `program` holds
// the sources of all calls that are made, and outlives the backend.
std::unique_ptr<Backend> MakeTextBackend(Backend& host, const TextProgram& program);

}  // namespace ridge::cuda_text

// The kernels whose text we write, on the host: a backend for checks of operators.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ridge/backend/backend.h"
#include "ridge/backend/cuda/kernel_text.h"
#include "tests/cuda_text/text_program.h"

namespace ridge::cuda_text {

// A kernel runs on exact copies of its operands: AddressSanitizer sees each byte beside them, and
// without it a launch that writes there fails by its name.  Blocks and threads run forward the
// first time, then backward, and so on.  `program` holds the text's source, and outlives the
// kernel.
std::unique_ptr<Kernel> MakeTextKernel(cuda::KernelText text, const OpCall& call,
                                       const TextProgram& program);

// `program` holds the sources of all calls that are made, and outlives the backend.
std::unique_ptr<Backend> MakeTextBackend(Backend& host, const TextProgram& program);

}  // namespace ridge::cuda_text

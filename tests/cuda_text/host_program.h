// Kernels' texts as a shared library of the host.  Depends on the standard library alone.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace ridge::cuda_text {

// Makes the library `out`: `prelude`, then each source in a namespace of its own.  It has
// `ridge_kernels` and `ridge_block` (host_block.h); kernel f of source k is named "k:f".
// Returns "" or the compiler's messages.
std::string CompileForHost(std::string_view prelude, const std::vector<std::string>& sources,
                           const std::string& out);

}  // namespace ridge::cuda_text

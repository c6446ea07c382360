// Heap memory that oneDNN's packing products ("gemm:...") allocate in each call.
//
// Matrix products and irregular convolutions use them without AVX-512.  Their buffers are not part
// of the scratchpad, so the plan gets their size from here.
#pragma once
#include <cstdint>
#include <string>

#include "ridge/core/instructions.h"
#include "ridge/graph/op_def.h"

namespace ridge::cpu {

// A product as BLAS sees it, by columns: c (m, n) = a (m, k) b (k, n).  Row-major matrices are
// their own transposes, so m is the last extent of a row-major result.
struct GemmExtents {
  int64_t m = 0, n = 0, k = 0;
  bool transposed_b = false;
};

// "gemm:jit:f32", "ip:gemm:jit"
bool AllocatesInCalls(const std::string& implementation);

// Upper bound of the bytes that one product on `threads` threads holds: from the library's own
// block sizes, as the maximum over all thread counts that it may use.
// REQUIRES: f32 or bf16.
int64_t GemmBufferBytes(const GemmExtents& extents, DType dtype, int threads, Instructions vectors);
// The same for `threads` concurrent products, each on one thread.
int64_t GemmBufferBytesAlone(const GemmExtents& extents, DType dtype, int threads,
                             Instructions vectors);

// Call it before such kernels run.  It makes the library generate the code of all of them, as their
// first call would, and makes malloc map and unmap each large buffer: by default it keeps several
// per thread, since alignment leaves gaps that are too small for the next buffer.
void PrepareGemm();

}  // namespace ridge::cpu

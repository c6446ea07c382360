// What oneDNN's packing products ("gemm:...") take from the system in each call.
//
// They are what matrix products and odd convolutions run on where there is no AVX-512.  Their
// buffers are not part of the scratchpad, so the plan learns of them here.
#pragma once
#include <cstdint>
#include <string>

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

// Most that one product shared by `threads` threads holds.  It can't hold more: these are the
// library's own block sizes, with the most over all numbers of threads that it may use.
// REQUIRES: f32 or bf16.
int64_t GemmBufferBytes(const GemmExtents& extents, DType dtype, int threads);
// The same for `threads` products side by side, each on one thread.
int64_t GemmBufferBytesAlone(const GemmExtents& extents, DType dtype, int threads);

// Before such kernels run.  The library generates the code of all of them now, which it would do in
// the first call.  And from here on the system gives large buffers as pages of their own and takes
// them back when they are freed: the allocator's usual ways keep several for each thread, because
// a rest that is left between two aligned ones makes the space of the first too small for the next.
void PrepareGemm();

}  // namespace ridge::cpu

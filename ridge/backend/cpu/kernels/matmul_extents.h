// A call of matmul that is one product of two matrices.
#pragma once
#include <cstdint>
#include <optional>

#include "ridge/graph/op_def.h"

namespace ridge::cpu {

// y [m, n] = a [m, k] b [k, n]; a or b is transposed in memory.
struct MatmulExtents {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
};

// nullopt when the call is a batch of products.
// REQUIRES: no tensor of the call is empty.
inline std::optional<MatmulExtents> MatmulExtentsOf(const OpCall& call) {
  const Dims &a = call.inputs[0].dims, &b = call.inputs[1].dims;
  MatmulExtents e;
  e.transpose_a = call.integer("transpose_a") != 0;
  e.transpose_b = call.integer("transpose_b") != 0;
  if (b.size() != 2 || (e.transpose_a && a.size() != 2)) return std::nullopt;
  e.n = e.transpose_b ? b[0] : b[1];
  e.k = e.transpose_b ? b[1] : b[0];
  e.m = call.outputs[0].elements() / e.n;
  return e;
}

}  // namespace ridge::cpu

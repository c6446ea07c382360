// `--precision-for`: products that mixed precision leaves in f32, and results that it may store in
// 16 bits though outputs are computed from them, by patterns of the names of parameters that the
// products read.
//
//   head.*=f32    y = matmul(x, w)  ->  y = matmul(x, w, keep_f32=1),   w = head.weight
//   head.*=bf16   y = matmul(x, w)  ->  y = matmul(x, w, narrow_result=1)
//
// Products of the gradient follow keep_f32 (graph/keep_f32.h), so the mark is made before
// differentiation.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/graph/graph.h"

namespace ridge {

struct PrecisionFor {
  std::string pattern;    // of parameters' names
  bool keeps_f32 = true;  // false: as the run's other products, and results may have 16 bits
};

// {"head.*=f32,*.attn.*=f32", "stem.*=f32"}.  Fails with kInvalidArgument, also for another type
// than f32 and the run's own.
Result<std::vector<PrecisionFor>> ParsePrecisionFor(const std::vector<std::string>& texts,
                                                    const std::string& precision);

// Marks matching products of f32 that read a parameter, as it is or computed from parameters and
// constants alone (cast, viewed, dequantized, added to), and products of activations by their own
// names.  Of the patterns that match a product the first decides.  Fails with kInvalidArgument when
// a pattern matches none.
Result<Graph> WithPrecisionFor(const Graph& forward, const std::vector<PrecisionFor>& patterns);

}  // namespace ridge

// `--precision-for`: products that mixed precision leaves in f32, by patterns of the names of
// parameters that they read.
//
//   y = matmul(x, w)  ->  y = matmul(x, w, keep_f32=1),   w = head.weight, pattern head.*
//
// Products of the gradient follow (graph/keep_f32.h), so the mark is made before differentiation.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/graph/graph.h"

namespace ridge {

struct PrecisionFor {
  std::string pattern;    // of parameters' names
  bool keeps_f32 = true;  // false: as the run's other products
};

// {"head.*=f32,*.attn.*=f32", "stem.*=f32"}.  Fails with kInvalidArgument, also for another type
// than f32 and the run's own.
Result<std::vector<PrecisionFor>> ParsePrecisionFor(const std::vector<std::string>& texts,
                                                    const std::string& precision);

// Marks products of f32 that read a parameter, as it is or computed from parameters and constants
// alone (cast, viewed, dequantized, added to), and products of activations by their own names.  Of
// the patterns that match a product the first decides.  Fails with kInvalidArgument when a pattern
// matches none.
Result<Graph> WithKeptProducts(const Graph& forward, const std::vector<PrecisionFor>& patterns);

}  // namespace ridge

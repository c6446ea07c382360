// WithFrozenWeights: weights that are not trained, kept in 4 bits a number.
//
//   y = x W'  ->  y = x dequantize_nf4(NAME.nf4, NAME.nf4_scales)',   NAME frozen
//
// as QLoRA has them (Dettmers et al. 2023; core/nf4.h): the two parts start as what NAME would, its
// values rounded to the nearest of 16.  Only weights that products and convolutions read, of at
// least 4096 numbers, are kept so; tables that are looked up, norms and biases stay as they are.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/graph/graph.h"

namespace ridge {

struct FrozenWeightsOptions {
  bool nf4 = false;
  std::vector<std::string> targets = {};  // patterns of weights; empty: all
};

// "nf4,target=*.attn.*,target=*.mlp.*"; "" and "f32": as the model has them.  Fails with
// kInvalidArgument.
Result<FrozenWeightsOptions> ParseFrozenWeights(const std::string& text);

// Fails with kInvalidArgument when no weight is frozen, or a target matches none that could be kept
// so.  `kept`, if given, receives their number.
Result<Graph> WithFrozenWeights(const Graph& forward, const FrozenWeightsOptions& options,
                                int64_t* kept = nullptr);

// Replaces the two parts of each such weight in `tensors` by the weight, of the type that `graph`,
// the one without them, has.
Status DequantizeFrozen(const Graph& graph, std::map<std::string, Tensor>& tensors);

}  // namespace ridge

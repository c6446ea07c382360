// WithLora: low-rank adapters beside frozen weights (Hu et al. 2021), named as peft names them.
//
//   y = x W  ->  y = x W + (alpha / rank) (x A') B',   NAME.lora_A.weight A [rank, in],
//                                                      NAME.lora_B.weight B [out, rank]
//
// NAME is the weight's name without `.weight`.  A is uniform in +-1/sqrt(in), B is 0, so training
// starts with the model as it is.  Only A and B are trained, and what `--trainable` names.
//
// The adapter is computed beside the product: neither B A nor the gradient of W exists, so a row
// costs 2 rank (in + out) multiplications instead of in x out more.  A convolution has A as a
// convolution to `rank` channels and B as one of 1x1.  A weight that other operators read (a table
// of embeddings that is also the last layer) becomes W + (alpha / rank) B A.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/graph/graph.h"

namespace ridge {

struct LoraOptions {
  int64_t rank = 0;  // 0: none
  double alpha = 0;
  std::vector<std::string> targets;  // patterns of weights; empty: all that only products read

  double scale() const { return alpha / static_cast<double>(rank); }
};

// "rank=8,alpha=16,target=*.qkv.*,target=*.mlp.*"; alpha is rank where it is not given.  Fails
// with kInvalidArgument.
Result<LoraOptions> ParseLora(const std::string& text);

// `trainable`: patterns of further parameters that are trained.  Fails with kInvalidArgument when a
// target matches no weight: a matrix, or the kernel of a convolution without groups.
Result<Graph> WithLora(const Graph& forward, const LoraOptions& options,
                       const std::vector<std::string>& trainable);

// Adds (alpha / rank) B A to each adapted weight in `tensors` and removes A and B.  `graph` is the
// one without adapters.
Status MergeLora(const Graph& graph, const LoraOptions& options,
                 std::map<std::string, Tensor>& tensors);

}  // namespace ridge

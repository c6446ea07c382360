// SampleToken: the next token, drawn from a language model's logits.
#pragma once
#include <cstdint>
#include <span>

#include "ridge/core/status.h"

namespace ridge {

struct SamplingOptions {
  double temperature = 1;  // divides the logits; 0: always the largest
  int64_t top_k = 0;       // only the k largest; 0: all
  // Only the fewest of the largest whose probabilities sum to at least this (nucleus sampling,
  // Holtzman et al., ICLR 2020); after top_k.
  double top_p = 1;
  uint64_t seed = 0;
};

// Fails with kInvalidArgument unless temperature >= 0, top_k >= 0 and 0 < top_p <= 1.
Status CheckSampling(const SamplingOptions& options);

// A function of the logits, the options and the position alone.  Of equal logits the first counts
// as the larger one.  REQUIRES: logits are not empty; the options are checked.
int64_t SampleToken(std::span<const float> logits, const SamplingOptions& options,
                    int64_t position);

}  // namespace ridge

// Rates by pattern: `--lr-for`, factors on the learning rate of the parameters that match.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/graph/graph.h"

namespace ridge {

struct RateFactor {
  std::string pattern;  // of parameters' names
  double factor = 1;
};

// "body.*=0.1,head.*=10".  Fails with kInvalidArgument.
Result<std::vector<RateFactor>> ParseRateFactors(const std::string& text);

// Fails with kInvalidArgument when a pattern matches no parameter that is trained.
Status CheckRateFactors(const std::vector<RateFactor>& factors, const Graph& graph);

// That of the first pattern that matches, else 1.
double RateFactorOf(const std::vector<RateFactor>& factors, const std::string& name);

}  // namespace ridge

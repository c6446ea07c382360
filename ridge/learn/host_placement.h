// `--place`: parameters that rest on the host beside a GPU, whose kernels read and update them
// there.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/graph.h"

namespace ridge {

// `--place auto`: the plan says which tables.
inline bool IsAutoPlace(const std::vector<std::string>& texts) {
  return texts.size() == 1 && texts.front() == "auto";
}

// The patterns of "PATTERN=cpu[,PATTERN=cpu]", or "auto" alone.  Fails with kInvalidArgument for
// other texts.
Result<std::vector<std::string>> ParsePlace(const std::vector<std::string>& texts);

// The parameters of `forward` whose names match.  REQUIRES: ParsePlace() takes `texts`, and they
// are not "auto".  Fails with kInvalidArgument where a pattern matches none.
Result<std::vector<std::string>> PlacedParameters(const std::vector<std::string>& texts,
                                                  const Graph& forward);

// Parameters that nodes look rows up in, largest first; behind them those that other nodes read,
// too, such as a tied head, for whom a copy crosses in each step.
std::vector<std::string> TablesOf(const Graph& forward);

}  // namespace ridge

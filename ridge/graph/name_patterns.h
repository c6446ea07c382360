// Patterns of parameters' names, as options give them.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

bool MatchesAny(const std::string& name, const std::vector<std::string>& patterns);

// kInvalidArgument: the pattern of `option` ("--freeze ") matches none of `names`; tells the
// nearest ones, by their edit distance from the pattern without its * and ?.  `value` ends the
// option of the hint: "=f32".
Status NoNameMatches(const std::string& graph, const std::string& option,
                     const std::string& pattern, const std::vector<std::string>& names,
                     const std::string& value = "");

}  // namespace ridge

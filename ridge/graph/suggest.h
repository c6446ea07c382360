// "did you mean": the known name that is closest to a mistyped one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace ridge {

// The candidate with the fewest edits (a letter added, dropped, changed, or two swapped) from
// `name`, or "" when none is close enough.  The first of equals wins.
std::string ClosestName(std::string_view name, const std::vector<std::string>& candidates);

// "; did you mean 'matmul'?", or "" when no candidate is close enough.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace ridge

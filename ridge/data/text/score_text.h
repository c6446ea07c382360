// ScoreText: a number of a tokenizer.json as the package `tokenizers` reads it.
#pragma once
#include <string_view>

namespace ridge {

// The package reads the digits as one integer, rounded, times or divided by one power of ten: up to
// a unit in the last place beside the nearest double.  Scores decide between ways of cutting a word
// whose sums are nearly equal, so that unit counts.  REQUIRES: a number of JSON.
double ReadScore(std::string_view text);

}  // namespace ridge

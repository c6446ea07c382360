// Patterns of names, as a shell has them.
#pragma once
#include <string>

namespace ridge {

// Whether `text` is of the form `pattern`, where * is any text and ? any character.
bool MatchesPattern(const std::string& text, const std::string& pattern);

}  // namespace ridge

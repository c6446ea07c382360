// Pieces of JSON for files that are written as a stream.
#pragma once
#include <string>
#include <string_view>

namespace ridge {

// In quotes, escaped; bytes that are not UTF-8 become U+FFFD.
std::string JsonText(std::string_view text);

// The shortest digits that give the same double back; null for NaN and infinities.
std::string JsonNumber(double value);

}  // namespace ridge

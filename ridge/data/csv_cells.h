// What the text of one cell of a table says.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace ridge {

// "1.5", "-2e3", "+4", "inf"; with `decimal_comma` "1,5", and then "1.5" is no number, because
// some write a thousand so.
std::optional<double> ParseNumber(std::string_view text, bool decimal_comma = false);

// Empty, NA, N/A, NaN, null (in any case) or "?".
bool IsMissing(std::string_view text);

// true and yes are 1, false and no are 0, in any case.
std::optional<double> ParseBoolean(std::string_view text);

// Three groups of digits as 2024-05-31, 31.5.2024, 5/31/24, maybe with a time behind.
bool IsDate(std::string_view text);

// Bytes that are no UTF-8 are taken for Latin-1, as older spreadsheets write it.
void MakeUtf8(std::string& text);

}  // namespace ridge

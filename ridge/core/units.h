// Numbers as people read them, and sizes as people write them.
//
// Three digits that count: "1.62 ms", "12.3 MiB", "848 GFLOP/s".  Only ASCII, and always with a
// dot: machine formats never use these texts.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "ridge/core/status.h"

namespace ridge {

std::string FormatBytes(int64_t bytes);     // "512 B", "12.3 MiB": KiB, MiB, ... are powers of 2^10
std::string FormatSeconds(double seconds);  // "1.62 ms"; from 100 s on "2 min 05 s", "3 h 07 min"
std::string FormatCount(double count);      // "101,770"; from 10^7 on "11.7 M"; "0.25"
std::string FormatInteger(int64_t value);   // "25,557,032": all digits
std::string FormatPercent(double ratio);    // 0.0312 -> "3.1 %"
std::string FormatPercentChange(double ratio);  // 0.11 -> "+11.0 %"

// "1 node", "2 nodes".
std::string FormatCountOf(int64_t count, std::string_view noun);

// "848 GFLOP/s", "12.3 GB/s" for unit "FLOP" or "B"; prefixes are powers of 10^3.
std::string FormatRate(double per_second, std::string_view unit);

// "24GB" is 24 * 10^9, "24GiB" is 24 * 2^30, "1048576" is bytes; a blank before the unit, decimals
// ("1.5GiB") and small letters are fine.  Fails with kInvalidArgument.
Result<int64_t> ParseSize(std::string_view text);

}  // namespace ridge

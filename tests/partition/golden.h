// Expected texts in tests/partition.
#pragma once
#include <string>

namespace ridge {

// The text against that of tests/partition/NAME; RIDGE_UPDATE_TESTS=1 writes it.
void ExpectGolden(const std::string& name, const std::string& text);

}  // namespace ridge

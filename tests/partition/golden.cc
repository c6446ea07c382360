#include "tests/partition/golden.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace ridge {

void ExpectGolden(const std::string& name, const std::string& text) {
  const char* source = std::getenv("RIDGE_SOURCE_DIR");
  const std::string path =
      fmt::format("{}/tests/partition/{}", source == nullptr ? "." : source, name);
  if (std::getenv("RIDGE_UPDATE_TESTS") != nullptr) std::ofstream(path) << text;
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << path << ": RIDGE_UPDATE_TESTS=1 writes what is there now";
}

}  // namespace ridge

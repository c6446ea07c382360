#include "ridge/core/process.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

TEST(UtcText, IsReadBackToTheSecond) {
  for (const double wall_s : {0.0, 951827696.0, 1767225600.75, 4102444799.0})
    EXPECT_EQ(UtcSeconds(UtcText(wall_s)), static_cast<double>(static_cast<int64_t>(wall_s)));
  EXPECT_EQ(UtcText(951827696), "2000-02-29T12:34:56Z");
  EXPECT_EQ(UtcSeconds("yesterday"), 0);
}

}  // namespace
}  // namespace ridge

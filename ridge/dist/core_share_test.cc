#include "ridge/dist/core_share.h"

#include <gtest/gtest.h>

#include "ridge/core/threads.h"
#include "ridge/dist/local.h"

namespace ridge {
namespace {

TEST(AllHaveACoreToSpare, RanksOfOneMachineShareItsCores) {
  const int cores = AllowedCores();
  for (const int size : {1, 2, 3}) {
    for (const int threads : {1, cores / size, cores, 2 * cores}) {
      RunRanks(size, [&](Communicator& ranks) {
        const Result<bool> spare = AllHaveACoreToSpare(ranks, threads);
        ASSERT_TRUE(spare.ok()) << spare.status().message();
        EXPECT_EQ(*spare, size * (threads + 1) <= cores) << size << " ranks, " << threads;
      });
    }
  }
}

TEST(AllHaveACoreToSpare, ARankThatLacksOneSpeaksForAll) {
  RunRanks(2, [](Communicator& ranks) {
    const Result<bool> spare = AllHaveACoreToSpare(ranks, ranks.rank() == 0 ? -1 : AllowedCores());
    ASSERT_TRUE(spare.ok()) << spare.status().message();
    EXPECT_FALSE(*spare);
  });
}

}  // namespace
}  // namespace ridge

#include "ridge/measure/time_sums.h"

#include <gtest/gtest.h>

#include <mutex>

#include "ridge/backend/reference/reference_backend.h"
#include "ridge/dist/test_ranks.h"

namespace ridge {
namespace {

TEST(TimeSumsTest, AllRanksGetTheSameTableBySize) {
  for (const int ranks : {2, 3}) {
    std::mutex mutex;
    std::vector<std::vector<SumTime>> all;
    RunRanks(ranks, [&](Communicator& communicator) {
      const std::unique_ptr<Backend> backend = MakeReferenceBackend();
      const auto times = TimeSums(communicator, *backend, 1,
                                  {.least_bytes = 4096, .most_bytes = 65536, .size_s = 1e-4});
      ASSERT_TRUE(times.ok()) << times.status().message();
      const std::lock_guard lock(mutex);
      all.push_back(*times);
    });
    ASSERT_EQ(all.size(), static_cast<size_t>(ranks));
    for (const std::vector<SumTime>& times : all) {
      ASSERT_EQ(times.size(), 3u);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(times[i].bytes, 4096 << (2 * i));
        EXPECT_GT(times[i].seconds, 0);
        EXPECT_EQ(times[i].seconds, all[0][i].seconds);
        EXPECT_GT(times[i].bf16_seconds, 0);
        EXPECT_EQ(times[i].bf16_seconds, all[0][i].bf16_seconds);
      }
    }
  }
}

}  // namespace
}  // namespace ridge

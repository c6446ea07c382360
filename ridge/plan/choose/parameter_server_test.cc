#include "ridge/plan/choose/parameter_server.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

constexpr double kBytes = 1e9;

Hardware Card() {
  Hardware card;
  card.id = "card";
  card.host_link_gb_s = 30;
  return card;
}

TEST(CompareSums, AServersPortCarriesTheGradientsOfAll) {
  const Hardware card = Card();
  for (const int64_t count : {2, 4, 8}) {
    const std::optional<SumWays> ways = CompareSums({&card, count}, kBytes);
    ASSERT_TRUE(ways);
    const auto n = static_cast<double>(count);
    EXPECT_DOUBLE_EQ(ways->port_bytes, 2 * n * kBytes);
    EXPECT_DOUBLE_EQ(ways->sent_bytes, 2 * (n - 1) / n * kBytes);
    EXPECT_NEAR(ways->server_s / ways->all_reduce_s, n * n / (n - 1), 0.02);
  }
}

// What a machine has added up goes over the network once.
TEST(CompareSums, MachinesAddUpBeforeTheySend) {
  const Hardware card = Card();
  const std::optional<SumWays> ways = CompareSums({&card, 4, 3, 10e9}, kBytes);
  ASSERT_TRUE(ways);
  EXPECT_DOUBLE_EQ(ways->port_bytes, 6 * kBytes);
  const double within_s = *AllReduceSeconds({&card, 4}, kBytes);
  EXPECT_NEAR(ways->server_s - within_s, 6 * kBytes / 9e9, 1e-3);
}

TEST(CompareSums, OneDeviceSendsNothing) {
  const Hardware card = Card();
  const std::optional<SumWays> ways = CompareSums({&card, 1}, kBytes);
  ASSERT_TRUE(ways);
  EXPECT_EQ(ways->server_s, 0);
  EXPECT_EQ(ways->all_reduce_s, 0);
}

TEST(CompareSums, NothingIsSaidOfLinksThatAreNotKnown) {
  Hardware card = Card();
  card.host_link_gb_s.reset();
  EXPECT_FALSE(CompareSums({&card, 4}, kBytes));
  const Hardware known = Card();
  EXPECT_FALSE(CompareSums({&known, 4, 2}, kBytes));
}

}  // namespace
}  // namespace ridge

#include "ridge/plan/hardware/cluster.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

std::string ErrorOf(const std::string& text) {
  const Result<std::vector<Cluster>> parsed = ParseClusters(text, "my.toml");
  EXPECT_FALSE(parsed.ok()) << text;
  return parsed.ok() ? "" : parsed.status().message();
}

TEST(ClusterTest, EveryEntryHasAKnownDeviceANetworkAndASource) {
  for (const Cluster& cluster : ClusterCatalog()) {
    EXPECT_TRUE(FindHardware(cluster.device).ok()) << cluster.id;
    EXPECT_GE(cluster.per_node(), 1) << cluster.id;
    EXPECT_GT(cluster.node_bytes_per_s(), 1e9) << cluster.id;
    EXPECT_FALSE(cluster.source.empty() || cluster.network.empty()) << cluster.id;
  }
}

TEST(ClusterTest, AFileTakesWhatItLeavesOutFromTheCatalog) {
  const auto parsed = ParseClusters(
      "[lab]\nlike = \"dgx-h100\"\nnodes = 3\n[desk]\ndevice = \"rtx4090\"\nadapter_gb_s = 1.25\n",
      "my.toml");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->at(0).device, "h100-sxm");
  EXPECT_EQ(parsed->at(0).nodes, 3);
  EXPECT_EQ(parsed->at(0).node_bytes_per_s(), 400e9);
  EXPECT_EQ(parsed->at(1).per_node(), 1);
  EXPECT_EQ(parsed->at(1).node_bytes_per_s(), 1.25e9);
}

TEST(ClusterTest, MistakesAreNamedWithTheirPlace) {
  EXPECT_EQ(ErrorOf("[lab]\ndevise = \"h100-sxm\"\n"),
            "my.toml:2: no key 'devise'; did you mean 'device'? hint: `ridge devices clusters "
            "--json` has all keys");
  EXPECT_EQ(ErrorOf("[lab]\nnodes = \"two\"\n"),
            "my.toml:2: nodes is a text; it must be a number of at least 0");
  EXPECT_EQ(ErrorOf("[lab]\nadapter_gb_s = 1\n"),
            "my.toml: lab has no device. hint: device = \"h100-sxm\", one of `ridge devices`");
  EXPECT_EQ(ErrorOf("[lab]\ndevice = \"l4\"\n"),
            "my.toml: lab has no adapter_gb_s, the rate of a node's network adapter in one "
            "direction. hint: adapter_gb_s = 12.5 is 100 Gb/s");
  EXPECT_EQ(ErrorOf("[lab]\ndevice = \"l4\"\nadapter_gb_s = 1\nnodes = 1.5\n"),
            "my.toml: lab has a number of devices, nodes or adapters that is no whole number above "
            "0");
  EXPECT_EQ(FindCluster("dgx-h10").status().message(),
            "no cluster 'dgx-h10'; did you mean 'dgx-h100'? hint: `ridge devices clusters` lists "
            "all");
}

}  // namespace
}  // namespace ridge

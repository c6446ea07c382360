#include "ridge/plan/hardware/collectives.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

constexpr double kMiB = 1 << 20;

Hardware Device(const std::string& id) {
  Result<Hardware> found = FindHardware(id);
  EXPECT_TRUE(found.ok()) << found.status().message();
  return std::move(*found);
}

// GB/s that the bus of `count` devices in one machine reaches.
double BusGBs(const Hardware& device, int64_t count, double bytes) {
  const auto n = static_cast<double>(count);
  return bytes * 2 * (n - 1) / n / *AllReduceSeconds({&device, count}, bytes) / 1e9;
}

TEST(CollectivesTest, ASendTakesALatencyAndTheLinksRate) {
  const Hardware h100 = Device("h100-sxm");
  const double small_s = *CollectiveSeconds({&h100, 4}, CollectiveKind::kSend, 0);
  const double large_s = *CollectiveSeconds({&h100, 4}, CollectiveKind::kSend, 1e9);
  EXPECT_NEAR(small_s, 11.8e-6, 1e-9);
  EXPECT_NEAR(1e9 / (large_s - small_s) / 1e9, 0.75 * *h100.peer_link_gb_s, 1);
  EXPECT_LT(large_s, *AllReduceSeconds({&h100, 4}, 1e9));
}

TEST(CollectivesTest, MeasuredSizesReachTheirMeasuredRates) {
  const Hardware a100 = Device("a100-sxm4-40g");
  EXPECT_NEAR(BusGBs(a100, 8, kMiB), 20, 0.01);
  EXPECT_NEAR(BusGBs(a100, 8, 64 * kMiB), 203, 0.01);
  EXPECT_NEAR(BusGBs(a100, 8, 8192 * kMiB), 229, 0.01);
  EXPECT_NEAR(BusGBs(a100, 8, 22.627417 * kMiB), 145, 0.01) << "between 16 and 32 MiB";
  EXPECT_DOUBLE_EQ(*AllReduceSeconds({&a100, 8}, 8), *AllReduceSeconds({&a100, 8}, kMiB));
}

// Eight V100s in a cube mesh: five are slower than four.
TEST(CollectivesTest, MoreDevicesMayBeSlowerWhereTheirLinksSayso) {
  const Hardware v100 = Device("v100-sxm2-32g");
  EXPECT_LT(BusGBs(v100, 5, 1024 * kMiB), 0.5 * BusGBs(v100, 4, 1024 * kMiB));
  EXPECT_EQ(AllReduceSource({&v100, 8}), "measured: vTrain, DGX-1");
}

TEST(CollectivesTest, WithoutAMeasurementTheLinkDecides) {
  const Hardware bridged = Device("rtx3090");
  EXPECT_EQ(AllReduceSource({&bridged, 2}), "modelled");
  EXPECT_NEAR(BusGBs(bridged, 2, 1024 * kMiB), 0.75 * *bridged.peer_link_gb_s, 0.1);
  EXPECT_NEAR(BusGBs(bridged, 4, 1024 * kMiB), 0.4 * *bridged.host_link_gb_s, 0.1)
      << "a bridge joins two";
  Hardware unknown = bridged;
  unknown.peer_link_gb_s.reset();
  unknown.host_link_gb_s.reset();
  EXPECT_EQ(AllReduceSeconds({&unknown, 2}, kMiB), std::nullopt);
  EXPECT_EQ(AllReduceSeconds({&unknown, 1}, kMiB), 0) << "one device adds up nothing";
}

// 4 nodes, 16 MiB: 93.9 GB/s (stas00/ml-engineering@744d01e); the source names no adapters, here
// they are those of an H100's machine.
TEST(CollectivesTest, MachinesWaitForTheirNetwork) {
  const Hardware h100 = Device("h100-sxm");
  const DeviceGroup four = {&h100, 8, 4, 400e9};
  const double bytes = 16 * kMiB;
  EXPECT_NEAR(bytes * 2 * 31 / 32 / *AllReduceSeconds(four, bytes) / 1e9, 93.9, 93.9 / 3);
  DeviceGroup slow = four;
  slow.node_bytes_per_s = 12.5e9;
  EXPECT_GT(*AllReduceSeconds(slow, 1024 * kMiB), 10 * *AllReduceSeconds(four, 1024 * kMiB));
  slow.node_bytes_per_s = 0;
  EXPECT_EQ(AllReduceSeconds(slow, bytes), std::nullopt);
}

// A ring's steps grow with the devices, a tree's with their logarithm.
TEST(CollectivesTest, SmallSumsOfManyMachinesTakeATree) {
  const Hardware h100 = Device("h100-sxm");
  const double few = *AllReduceSeconds({&h100, 8, 16, 400e9}, 1024);
  EXPECT_LT(*AllReduceSeconds({&h100, 8, 128, 400e9}, 1024), 2 * few);
}

TEST(CollectivesTest, HalfAnAllReduceIsAReduceScatterWhereNothingAddsUnderway) {
  const Hardware a100 = Device("a100-sxm4-80g"), h100 = Device("h100-sxm");
  const double bytes = 256 * kMiB;
  for (const CollectiveKind kind : {CollectiveKind::kReduceScatter, CollectiveKind::kAllGather}) {
    EXPECT_DOUBLE_EQ(2 * *CollectiveSeconds({&a100, 8}, kind, bytes),
                     *AllReduceSeconds({&a100, 8}, bytes));
    EXPECT_GT(2 * *CollectiveSeconds({&h100, 8}, kind, bytes), *AllReduceSeconds({&h100, 8}, bytes))
        << "a switch adds";
  }
}

TEST(CollectivesTest, GroupsOfANodeShareItsNetwork) {
  const Hardware h100 = Device("h100-sxm");
  const DeviceGroup all = {&h100, 8, 16, 400e9};
  const DeviceGroup inner = StridedGroup(all, 1, 8), outer = StridedGroup(all, 8, 16),
                    mixed = StridedGroup(all, 4, 32);
  EXPECT_EQ(std::pair(inner.per_node, inner.nodes), std::pair(int64_t{8}, int64_t{1}));
  EXPECT_EQ(std::pair(outer.per_node, outer.nodes), std::pair(int64_t{1}, int64_t{16}));
  EXPECT_DOUBLE_EQ(outer.node_bytes_per_s, 50e9);
  EXPECT_EQ(std::pair(mixed.per_node, mixed.nodes), std::pair(int64_t{2}, int64_t{16}));
  EXPECT_DOUBLE_EQ(mixed.node_bytes_per_s, 100e9);
}

TEST(CollectivesTest, SendingToAnotherMachineTakesItsNetwork) {
  const Hardware h100 = Device("h100-sxm");
  const double bytes = 64 * kMiB;
  EXPECT_GT(*CollectiveSeconds({&h100, 1, 2, 50e9}, CollectiveKind::kSend, bytes),
            5 * *CollectiveSeconds({&h100, 2}, CollectiveKind::kSend, bytes));
  EXPECT_FALSE(CollectiveSeconds({&h100, 1, 2}, CollectiveKind::kSend, bytes)) << "no network";
}

}  // namespace
}  // namespace ridge

#include "ridge/plan/choose/upgrades.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ridge {
namespace {

Hardware Device(const std::string& id) { return *FindHardware(id); }

std::string SuccessorNames(const std::string& id) {
  std::string names;
  for (const Hardware* hardware : Successors(Device(id), HardwareCatalog()))
    names += hardware->id + " ";
  return names;
}

Upgrade Taking(double seconds, bool is_allowed = true) {
  Upgrade upgrade;
  upgrade.offer.time_s = seconds;
  if (!is_allowed) upgrade.offer.refusals = {"memory"};
  return upgrade;
}

TEST(Successors, AreLaterDevicesOfTheKindWithNoLessMemory) {
  EXPECT_EQ(SuccessorNames("a100-sxm4-80g"), "h100-sxm h200-sxm b100 b200 ");
  EXPECT_EQ(SuccessorNames("rtx3090"), "rtx4090 rtx5090 ");
  EXPECT_EQ(SuccessorNames("mi300x"), "mi325x mi355x ");
  EXPECT_EQ(SuccessorNames("jetson-agx-orin-32g"), "") << "a soc is not replaced alone";
  for (const Hardware& device : HardwareCatalog()) {
    for (const Hardware* later : Successors(device, HardwareCatalog())) {
      EXPECT_GT(*later->year, *device.year) << device.id << " " << later->id;
      EXPECT_EQ(later->form, device.form) << device.id << " " << later->id;
      EXPECT_GE(*later->memory_gb, *device.memory_gb) << device.id << " " << later->id;
    }
  }
}

TEST(Upgrades, EachIsFasterThanAllBefore) {
  const std::vector<Upgrade> faster = FasterOnes(
      10, {Taking(11), Taking(8), Taking(9), Taking(7, /*is_allowed=*/false), Taking(6)});
  ASSERT_EQ(faster.size(), 2u);
  EXPECT_EQ(faster[0].offer.time_s, 8);
  EXPECT_EQ(faster[1].offer.time_s, 6);
}

TEST(Upgrades, RatiosAreThoseOfTheOfferBefore) {
  const Offer before = {.device = "rtx3090", .time_s = 10, .usd = 4.0};
  const Upgrade upgrade = MakeUpgrade(Device("rtx3090"), before, Device("rtx4090"),
                                      {.device = "rtx4090", .time_s = 5, .usd = 3.0});
  EXPECT_DOUBLE_EQ(upgrade.time_ratio, 0.5);
  EXPECT_DOUBLE_EQ(*upgrade.cost_ratio, 0.75);
  EXPECT_FALSE(
      MakeUpgrade(Device("rtx3090"), before, Device("rtx4090"), {.device = "rtx4090"}).cost_ratio);
}

TEST(Chassis, CardsTakeSlotsAndLanes) {
  EXPECT_EQ(ChassisOf(Device("rtx3090"), 4).slots, 12);
  EXPECT_EQ(ChassisOf(Device("rtx3090"), 4).lanes, 64);
  EXPECT_EQ(ChassisOf(Device("a2"), 2).lanes, 16);
  EXPECT_FALSE(ChassisOf(Device("h100-sxm"), 4).slots) << "modules take none";
  EXPECT_FALSE(ChassisOf(Device("h100-sxm"), 4).lanes);
}

TEST(Chassis, AnUpgradeNamesWhatIsMissing) {
  const Hardware a100 = Device("a100-sxm4-80g"), h100 = Device("h100-sxm"),
                 h200 = Device("h200-sxm"), card = Device("rtx3090");
  EXPECT_EQ(MissingFor(a100, 1, h100, 1), "another board: NVLink4, 700 W instead of 400 W");
  EXPECT_EQ(MissingFor(h100, 8, h200, 8), "");
  EXPECT_EQ(MissingFor(card, 1, card, 2), "6 slots instead of 3, 700 W instead of 350 W");
}

// Three slots each: two fit an ATX board, four fit no chassis.
TEST(Chassis, OffersNoteSlotsThatNoChassisHas) {
  const Hardware card = Device("rtx3090");
  const auto notes = [&](int64_t count) {
    return MakeOffer({.group = {&card, count}, .precision = "bf16", .step_s = 1}, {.samples = 1},
                     {})
        .notes;
  };
  const auto has = [&](int64_t count, const std::string& note) {
    const std::vector<std::string> all = notes(count);
    return std::find(all.begin(), all.end(), note) != all.end();
  };
  EXPECT_TRUE(has(4, "takes 12 slots, a chassis has 7 or 8"));
  EXPECT_TRUE(has(4, "wants 64 lanes of PCIe"));
  EXPECT_FALSE(has(2, "takes 6 slots, a chassis has 7 or 8"));
}

}  // namespace
}  // namespace ridge

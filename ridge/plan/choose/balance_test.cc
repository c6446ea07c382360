#include "ridge/plan/choose/balance.h"

#include <gtest/gtest.h>

#include "ridge/plan/hardware/planned_device.h"

namespace ridge {
namespace {

Hardware Device(const std::string& id) { return *FindHardware(id); }

TEST(Balance, HeadroomIsTheDevicesBandwidthOverTheSteps) {
  Hardware card = Device("rtx3090");
  card.memory_gb_s = 900;
  const auto balance = BalanceOf(card, {.flops = 6e12, .bytes = 300e9, .seconds = 0.5}, 90e12);
  ASSERT_TRUE(balance);
  EXPECT_DOUBLE_EQ(balance->headroom(), 1.5);
  EXPECT_DOUBLE_EQ(balance->intensity, 20);
  EXPECT_DOUBLE_EQ(balance->ridge_point, 100);
  EXPECT_TRUE(balance->is_memory_bound());
}

TEST(Balance, AStepAboveTheRidgePointIsBoundByArithmetic) {
  const auto balance =
      BalanceOf(Device("rtx3090"), {.flops = 1e15, .bytes = 1e9, .seconds = 1}, 70e12);
  EXPECT_FALSE(balance->is_memory_bound());
}

// A die is a device of its own and has its own memory.
TEST(Balance, EachDieHasItsPartOfTheBandwidth) {
  Hardware two = Device("mi250"), one = two;
  one.dies = 1;
  const StepWork work = {.flops = 1e12, .bytes = 1e11, .seconds = 1};
  EXPECT_DOUBLE_EQ(2 * BalanceOf(two, work, 1e14)->headroom(),
                   BalanceOf(one, work, 1e14)->headroom());
}

TEST(Balance, NothingIsSaidOfAStepWithoutTraffic) {
  EXPECT_FALSE(BalanceOf(Device("rtx3090"), {}, 1e12));
  Hardware unknown = Device("rtx3090");
  unknown.memory_gb_s.reset();
  EXPECT_FALSE(BalanceOf(unknown, {.flops = 1, .bytes = 1, .seconds = 1}, 1e12));
}

// 72 W of an L4 do not carry the 121 TFLOP/s of its sheet, 700 W of an H100 carry nearly all.
TEST(SustainedShare, PowerBoundsProductsOf16Bits) {
  EXPECT_LT(SustainedShare(Device("l4"), "bf16"), 0.6);
  EXPECT_GT(SustainedShare(Device("h100-sxm"), "bf16"), 0.9);
  EXPECT_EQ(SustainedShare(Device("l4"), "f32"), 1);
  for (const Hardware& hardware : HardwareCatalog()) {
    EXPECT_GT(SustainedShare(hardware, "bf16"), 0) << hardware.id;
    EXPECT_LE(SustainedShare(hardware, "bf16"), 1) << hardware.id;
  }
}

}  // namespace
}  // namespace ridge

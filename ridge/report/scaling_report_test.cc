#include "ridge/report/scaling_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridge {
namespace {

using testing::HasSubstr;
using testing::Not;

ScalingPoint Point(int64_t devices, double compute_s, double communication_s) {
  ScalingPoint point = {.devices = devices, .batch = 64};
  point.compute_s = compute_s;
  point.communication_s = point.slow_communication_s = communication_s;
  return point;
}

ScalingPoint TooSmall(int64_t devices, int64_t peak_bytes) {
  ScalingPoint point = {.devices = devices, .batch = 64};
  point.peak_bytes = peak_bytes, point.limit_bytes = 1 << 20;
  return point;
}

TEST(ScalingVerdict, SaysWhetherTwoHelp) {
  EXPECT_EQ(ScalingVerdict({Point(1, 1, 0), Point(2, 0.5, 0.05)}),
            "2 devices help: 1.82 times the samples a second of one (1.82 to 1.82).\n");
  EXPECT_THAT(ScalingVerdict({Point(1, 1, 0), Point(2, 0.5, 0.45)}),
              HasSubstr("2 devices hardly help: 1.05 times"));
  EXPECT_THAT(ScalingVerdict({Point(1, 1, 0), Point(2, 0.5, 0.75)}),
              HasSubstr("2 devices do not help: 0.80 times"));
  EXPECT_EQ(ScalingVerdict({Point(1, 1, 0)}), "");
}

TEST(ScalingVerdict, SaysWhereMoreIsLostAndWhenFewerAreFaster) {
  EXPECT_THAT(ScalingVerdict({Point(1, 1, 0), Point(2, 0.5, 0), Point(4, 0.25, 0.15)}),
              HasSubstr("4 devices: 2.50 times (2.50 to 2.50), 62.5 % of linear; most is lost to "
                        "sums of gradients, 37.5 % of a step.\n"));
  EXPECT_THAT(ScalingVerdict({Point(1, 1, 0), Point(2, 0.5, 0), Point(4, 0.4, 0.2)}),
              HasSubstr("4 do not beat 2: 0.83 times its samples a second.\n"));
}

// Devices that have too little memory are no base of a comparison.
TEST(ScalingVerdict, SaysWhatHasTooLittleMemory) {
  EXPECT_EQ(ScalingVerdict({TooSmall(1, 3 << 20), TooSmall(2, 2 << 20), Point(4, 1, 0)}),
            "1 to 2 devices have too little memory: of 2 each needs 2.00 MiB of 1.00 MiB.\n");
  EXPECT_THAT(ScalingVerdict({TooSmall(1, 3 << 20), Point(2, 1, 0), Point(4, 0.5, 0)}),
              HasSubstr("1 device has too little memory: 3.00 MiB of 1.00 MiB.\n4 devices help: "
                        "2.00 times the samples a second of 2 "));
}

TEST(ScalingReport, OnlyTermsThatThereAreHaveAColumn) {
  const ScalingTable table = {"net on x", "x", {Point(1, 1, 0), Point(2, 0.5, 0.1)}, {}};
  const std::string text = ScalingReport({table}, {});
  EXPECT_THAT(text, HasSubstr("  devices  kernels    sums    step  of linear\n"));
  EXPECT_THAT(text, HasSubstr("        2   500 ms  100 ms  600 ms     83.3 %\n"));
  EXPECT_THAT(text, HasSubstr("  ################:  |        107  107 to 107   1.67"));
  EXPECT_THAT(text, Not(HasSubstr("Weak")));
}

TEST(ScalingReport, PlacesStandBesideEachOther) {
  const ScalingTable fast = {"net on x", "x", {Point(1, 1, 0), Point(2, 0.5, 0)}, {}};
  const ScalingTable slow = {"net on y", "y", {Point(1, 1, 0), Point(2, 0.5, 0.5)}, {}};
  EXPECT_THAT(ScalingReport({fast, slow}, {}),
              HasSubstr("Samples a second beside each other\n"
                        "  devices    x  of linear   y  of linear\n"
                        "        1   64    100.0 %  64    100.0 %\n"
                        "        2  128    100.0 %  64     50.0 %\n\n"
                        "2 of x: 2.00 times the samples a second of 2 of y.\n"));
}

}  // namespace
}  // namespace ridge

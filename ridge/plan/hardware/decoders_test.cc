#include "ridge/plan/hardware/decoders.h"

#include <gtest/gtest.h>

#include <set>

#include "ridge/plan/hardware/hardware.h"

namespace ridge {
namespace {

TEST(DecodersTest, EachDeviceHasOneRowWithASource) {
  std::set<std::string> seen;
  for (const DecoderRow& row : DecoderRows()) {
    EXPECT_FALSE(row.source.empty());
    EXPECT_GE(row.engines, 1);
    for (const std::string& device : row.devices) {
      EXPECT_TRUE(seen.insert(device).second) << device;
      EXPECT_TRUE(device == "host" || FindHardware(device).ok()) << device;
    }
  }
}

TEST(DecodersTest, APictureTakesAsLongAsItHasPixels) {
  const auto small = FindDecoding("t4", {"h264", 1920, 540}),
             whole = FindDecoding("t4", {"h264", 1920, 1080});
  ASSERT_TRUE(small && whole);
  EXPECT_NEAR(whole->picture_s, 1.0 / 771, 1e-9);
  EXPECT_DOUBLE_EQ(small->picture_s, whole->picture_s / 2);
  EXPECT_FALSE(whole->on_host());
}

// docs/data.md: 580 us of decoding and 76 us of resizing for 500x375.
TEST(DecodersTest, JpegsAreDecodedOnTheHost) {
  const auto jpeg = FindDecoding("h100-sxm", {"jpeg", 500, 375});
  ASSERT_TRUE(jpeg);
  EXPECT_TRUE(jpeg->on_host());
  EXPECT_NEAR(jpeg->picture_s, 656e-6, 3e-6);
}

TEST(DecodersTest, WhatNoSourceSaysIsNotKnown) {
  EXPECT_FALSE(FindDecoding("mi300x", {"av1", 1920, 1080}));
  EXPECT_FALSE(FindDecoding("t4", {"av1", 1920, 1080})) << "Turing has no decoder for it";
  EXPECT_FALSE(FindDecoding("t4", {"mpeg2", 1920, 1080}));
}

}  // namespace
}  // namespace ridge

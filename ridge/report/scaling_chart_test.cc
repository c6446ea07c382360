#include "ridge/report/scaling_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridge {
namespace {

using testing::HasSubstr;
using testing::Not;

Offer Of(const std::string& device, int64_t count, double samples_s) {
  Offer offer = {.device = device, .count = count, .precision = "bf16"};
  offer.samples_s = samples_s;
  offer.samples_low_s = 0.8 * samples_s;
  offer.samples_high_s = 1.2 * samples_s;
  return offer;
}

std::vector<Offer> Offers() {
  std::vector<Offer> offers = {Of("a", 4, 300), Of("b", 1, 100), Of("a", 1, 100), Of("c", 1, 7),
                               Of("b", 2, 190)};
  TakeLinearShares(offers);
  return offers;
}

TEST(ScalingCharts, ADeviceWithOneCountHasNoCurve) {
  const std::string html = ScalingCharts(Offers(), 6);
  EXPECT_THAT(html, HasSubstr("a, bf16: 300 samples/s by 4"));
  EXPECT_THAT(html, HasSubstr("4 x a: 300 samples/s (240 to 360), 75.0 % of linear"));
  EXPECT_THAT(html, Not(HasSubstr("1 x c")));
  EXPECT_EQ(ScalingCharts({Of("a", 1, 1)}, 6), "");
}

TEST(ScalingCharts, TheFirstDevicesComeFirstAndNoMoreThanAsked) {
  EXPECT_THAT(ScalingCharts(Offers(), 1), Not(HasSubstr("b, bf16")));
  const std::string both = ScalingCharts(Offers(), 2);
  EXPECT_LT(both.find("a, bf16"), both.find("b, bf16"));
}

TEST(ScalingCharts, WithoutAnOfferOfOneThereIsNoLine) {
  EXPECT_THAT(ScalingCharts({Of("a", 2, 10), Of("a", 4, 19)}, 1), Not(HasSubstr("linear\"")));
}

}  // namespace
}  // namespace ridge

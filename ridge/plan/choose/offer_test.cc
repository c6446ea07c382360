#include "ridge/plan/choose/offer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ridge {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

Hardware Device(const std::string& id) {
  Result<Hardware> found = FindHardware(id);
  EXPECT_TRUE(found.ok()) << found.status().message();
  return std::move(*found);
}

DeviceStep StepOn(const Hardware& hardware, int64_t count) {
  return {.group = {&hardware, count},
          .precision = "bf16",
          .step_s = 0.1,
          .low_s = 0.08,
          .high_s = 0.13,
          .peak_bytes = 4 * kGiB,
          .limit_bytes = 20 * kGiB,
          .gradients = {{0.6, 50 << 20}, {0.3, 50 << 20}}};
}

using Names = std::vector<std::string>;

const TrainingLength kLength = {.samples = 1000, .epochs = 2, .batch = 64};

TEST(OfferTest, TheTimeIsThatOfAllUpdates) {
  const Hardware card = Device("rtx3090");
  const Offer offer = MakeOffer(StepOn(card, 1), kLength, {});
  EXPECT_DOUBLE_EQ(offer.time_s, 2 * 16 * 0.1);
  EXPECT_DOUBLE_EQ(offer.low_s, 2 * 16 * 0.08);
  EXPECT_DOUBLE_EQ(offer.high_s, 2 * 16 * 0.13);
  EXPECT_EQ(offer.exposed_s, 0) << "one device waits for nobody";
  EXPECT_TRUE(offer.is_allowed());
}

TEST(OfferTest, ALinearShareIsOverTheRateOfOneDevice) {
  const Hardware card = Device("rtx3090"), other = Device("t4");
  std::vector<Offer> offers = {MakeOffer(StepOn(card, 4), kLength, {}),
                               MakeOffer(StepOn(card, 1), kLength, {}),
                               MakeOffer(StepOn(other, 2), kLength, {})};
  EXPECT_DOUBLE_EQ(offers[1].samples_s, 64 / 0.1);
  EXPECT_DOUBLE_EQ(offers[1].samples_low_s, 64 / 0.13);
  EXPECT_DOUBLE_EQ(offers[1].samples_high_s, 64 / 0.08);
  TakeLinearShares(offers);
  EXPECT_DOUBLE_EQ(*offers[0].linear_share, offers[1].time_s / offers[0].time_s / 4);
  EXPECT_DOUBLE_EQ(*offers[1].linear_share, 1);
  EXPECT_FALSE(offers[2].linear_share) << "no offer of one";
}

// What builders of workstations advise: 1,000 W for two RTX 3090, 2,000 W for four A100 modules.
TEST(OfferTest, SuppliesHaveHeadroom) {
  EXPECT_EQ(SupplyWatts(Device("rtx3090"), 2), 1000);
  EXPECT_EQ(SupplyWatts(Device("a100-sxm4-40g"), 4), 2000);
  Hardware unknown = Device("rtx3090");
  unknown.power_w.reset();
  EXPECT_EQ(SupplyWatts(unknown, 2), std::nullopt);
}

TEST(OfferTest, TheUpperEndOfWhatIsEstimatedMustKeepTheLimits) {
  const Hardware card = Device("rtx3090");
  const double high = MakeOffer(StepOn(card, 1), kLength, {}).high_s;
  const auto refusals = [&](const ChooseLimits& limits) {
    return MakeOffer(StepOn(card, 1), kLength, limits).refusals;
  };
  EXPECT_EQ(refusals({.deadline_s = high}), Names{});
  EXPECT_EQ(refusals({.deadline_s = 0.99 * high}), Names{"deadline"});
  EXPECT_EQ(refusals({.power_w = 650}), Names{});
  EXPECT_EQ(refusals({.power_w = 649}), Names{"power"});
  EXPECT_EQ(refusals({.deadline_s = 1, .budget_usd = 1e-9}), (Names{"deadline", "budget"}));
  DeviceStep large = StepOn(card, 1);
  large.peak_bytes = large.limit_bytes + 1;
  EXPECT_EQ(MakeOffer(large, kLength, {}).refusals, Names{"memory"});
}

TEST(OfferTest, DevicesOfOnesOwnCostTheirElectricity) {
  const Hardware card = Device("rtx3090");
  const Offer own =
      MakeOffer(StepOn(card, 1), kLength, {.own = {"rtx3090"}, .terms = {.usd_kwh = 0.25}});
  ASSERT_TRUE(own.usd && own.energy_kwh);
  EXPECT_DOUBLE_EQ(*own.usd, 0.25 * *own.energy_kwh);
  EXPECT_EQ(own.price, "electricity");
  const Offer rented = MakeOffer(StepOn(card, 1), kLength, {});
  ASSERT_TRUE(rented.usd);
  EXPECT_GT(*rented.usd, *own.usd);
}

// Each hour of use saves the rent without the electricity.
TEST(OfferTest, BoughtDevicesPayOffAgainstTheirRent) {
  const Hardware card = Device("rtx3090");
  const ChooseLimits limits = {.buy = {{"rtx3090", 5000}}, .terms = {.usd_kwh = 0.2}};
  const Offer two = MakeOffer(StepOn(card, 2), kLength, limits);
  const std::optional<Rent> rent = CheapestRent("rtx3090", 2);
  ASSERT_TRUE(rent && two.pays_off_h && two.power_w);
  EXPECT_DOUBLE_EQ(*two.buy_usd, 10000);
  EXPECT_NEAR(*two.pays_off_h * (rent->usd_hour - *two.power_w / 1000 * 0.2), 10000, 1e-6);
  EXPECT_FALSE(MakeOffer(StepOn(card, 2), kLength, {}).buy_usd);
  const ChooseLimits dear = {.buy = {{"rtx3090", 5000}}, .terms = {.usd_kwh = 1000}};
  EXPECT_FALSE(MakeOffer(StepOn(card, 2), kLength, dear).pays_off_h) << "electricity above rent";
}

TEST(OfferTest, WhatOneDeviceLeavesUnusedIsNoted) {
  const Hardware module = Device("h100-sxm"), bridged = Device("a30");
  DeviceStep step = StepOn(module, 1);
  step.limit_bytes = 8 * step.peak_bytes;
  EXPECT_EQ(MakeOffer(step, kLength, {}).notes,
            (Names{"its NVLink4 is not used", "its memory fits one of 7 MIG slices"}));
  step.limit_bytes = 8 * step.peak_bytes - 1;
  EXPECT_EQ(MakeOffer(step, kLength, {}).notes, Names{"its NVLink4 is not used"});
  DeviceStep small = StepOn(bridged, 1);
  small.limit_bytes = 4 * small.peak_bytes;
  const Names notes = MakeOffer(small, kLength, {}).notes;
  EXPECT_EQ(notes.back(), "its memory fits one of 4 MIG slices");
  EXPECT_EQ(std::count(notes.begin(), notes.end(), "its NVLink3 bridge is not used"), 0);
}

TEST(OfferTest, AllowedOffersComeFirstAndUnknownCostsLast) {
  std::vector<Offer> offers(4);
  offers[0] = {.device = "dear", .time_s = 1, .usd = 9.0};
  offers[1] = {.device = "unknown", .time_s = 1};
  offers[2] = {.device = "refused", .time_s = 1, .usd = 1.0, .refusals = {"memory"}};
  offers[3] = {.device = "cheap", .time_s = 5, .usd = 2.0};
  const auto names = [&](OfferOrder order) {
    RankOffers(offers, order);
    std::string text;
    for (const Offer& offer : offers) text += offer.device + " ";
    return text;
  };
  EXPECT_EQ(names(OfferOrder::kCost), "cheap dear unknown refused ");
  EXPECT_EQ(names(OfferOrder::kTime), "dear unknown cheap refused ");
}

TEST(PriceTest, EachPriceIsOfADeviceOfTheCatalogWithDateAndSource) {
  ASSERT_GE(CloudPrices().size(), 150u);
  for (const CloudPrice& price : CloudPrices()) {
    EXPECT_TRUE(FindHardware(price.device).ok()) << price.device;
    EXPECT_GT(price.usd_hour, 0.05) << price.device;
    EXPECT_LT(price.usd_hour, 50) << price.device;
    EXPECT_TRUE(price.date.starts_with("20")) << price.date;
    EXPECT_FALSE(price.source.empty());
    EXPECT_GE(price.devices, 1);
  }
}

// Nobody rents eight out in machines of one.
TEST(PriceTest, AnInstanceIsRentedWhole) {
  const std::optional<Rent> two = CheapestRent("a10g", 2), eight = CheapestRent("a10g", 8);
  ASSERT_TRUE(two && eight);
  EXPECT_GE(two->price->devices, 2);
  EXPECT_DOUBLE_EQ(two->usd_hour, two->price->usd_hour * static_cast<double>(two->price->devices));
  EXPECT_FALSE(CheapestRent("a10g", 64));
  EXPECT_FALSE(CheapestRent("mi50", 1));
}

// A layout that does not fit is never offered; one that does replaces what does not, or is slower.
TEST(TakeLayout, TakesThePlaceOfWhatDoesNotFitOrIsSlower) {
  Offer plain = {.device = "a", .count = 8, .precision = "bf16"};
  plain.peak_bytes = 2, plain.limit_bytes = 1, plain.time_s = 1;
  Offer layout = plain;
  layout.layout = LayoutChoice{.data = 8, .zero = 3};
  layout.peak_bytes = 1, layout.time_s = 2;
  std::vector<Offer> offers = {plain};
  TakeLayout(layout, offers);
  ASSERT_EQ(offers.size(), 1u);
  EXPECT_TRUE(offers[0].layout);
  plain.peak_bytes = 1;
  offers = {plain};
  TakeLayout(layout, offers);
  EXPECT_FALSE(offers[0].layout);
  layout.time_s = 0.5;
  TakeLayout(layout, offers);
  EXPECT_TRUE(offers[0].layout);
  layout.count = 4;
  TakeLayout(layout, offers);
  EXPECT_EQ(offers.size(), 2u);
}

TEST(LayoutStep, AStepOfAnOfferIsThatOfItsLayout) {
  const Hardware& hardware = HardwareCatalog().front();
  LayoutCost cost;
  cost.choice = {.pipeline = 2, .data = 4, .samples = 2, .micro_batches = 4};
  LayoutSeconds& seconds = cost.seconds;
  seconds.kernels = 4, seconds.pipeline = 1, seconds.update = 1, seconds.tensor = 0.5;
  seconds.send = 0.25, seconds.data = 0.25;
  seconds.stragglers = (StragglerFactor(8) - 1) * 6;
  const DeviceStep step = LayoutStep({&hardware, 8}, "bf16", cost, 100, 0.5, 2);
  const Offer offer = MakeOffer(step, {32, 1, 32}, {});
  EXPECT_DOUBLE_EQ(offer.step_s, seconds.all());
  EXPECT_DOUBLE_EQ(offer.exposed_s, 1);
  EXPECT_DOUBLE_EQ(offer.high_s / offer.time_s * offer.step_s,
                   2 * (offer.step_s - offer.exposed_s) + offer.exposed_s);
  EXPECT_EQ(offer.layout, cost.choice);
}

}  // namespace
}  // namespace ridge

#include "ridge/plan/choose/serving.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace ridge {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;

using Names = std::vector<std::string>;

Hardware Device(const std::string& id) {
  Result<Hardware> found = FindHardware(id);
  EXPECT_TRUE(found.ok()) << found.status().message();
  return std::move(*found);
}

// Ten milliseconds a run, between 8 and 13.
ModelCost TenMilliseconds() {
  return {.precision = "bf16",
          .low = 0.8,
          .high = 1.3,
          .run_s = 0.01,
          .weight_bytes = 100 * kMiB,
          .scratch_bytes = 50 * kMiB,
          .runtime_bytes = 600 * kMiB};
}

ServingLoad Requests(double rate_s) {
  ServingLoad load;
  load.models = {{.model = "net", .rate_s = rate_s}};
  return load;
}

// Of `count` videos of 1080p at 10 frames a second.
ServingLoad Videos(int64_t count) {
  ServingLoad load;
  load.streams = {{.count = count, .fps = 10, .pictures = {"h264", 1920, 1080}}};
  load.models = {{.model = "net", .rate_s = 10, .stream = 0}};
  return load;
}

ServingOffer OfferFor(const ServingLoad& load, const std::string& device = "l4") {
  return MakeServingOffer(Device(device), load,
                          std::vector<ModelCost>(load.models.size(), TenMilliseconds()), 20 * kGiB);
}

// ---- queues

TEST(ServingTest, SteadySendersWaitForThoseWhoSendAtTheSameMoment) {
  EXPECT_DOUBLE_EQ(WaitSeconds({{.service_s = 0.01, .rate_s = 10}}, 0.01), 0);
  EXPECT_DOUBLE_EQ(WaitSeconds({{.service_s = 0.01, .rate_s = 40, .count = 4}}, 0.01), 0.03);
  EXPECT_DOUBLE_EQ(
      WaitSeconds({{.service_s = 0.01, .rate_s = 40, .count = 4}, {.service_s = 0.05, .rate_s = 1}},
                  0.01),
      0.08)
      << "and for the other model";
}

// 60 ms of work are sent at once; the first sender sends again after 50 ms.
TEST(ServingTest, WhatComesMeanwhileCountsToo) {
  EXPECT_NEAR(
      WaitSeconds({{.service_s = 0.02, .rate_s = 20}, {.service_s = 0.04, .rate_s = 2}}, 0.02),
      0.06, 1e-9);
}

TEST(ServingTest, WaitsGrowWithTheLoadAndWithoutEndWhereItIsTooMuch) {
  for (const bool periodic : {true, false}) {
    double before = 0;
    for (const double rate_s : {5.0, 20.0, 50.0, 80.0, 95.0}) {
      const double wait_s = WaitSeconds(
          {{.service_s = 0.01, .rate_s = rate_s, .count = 5, .periodic = periodic}}, 0.01);
      EXPECT_GE(wait_s, before) << rate_s;
      before = wait_s;
    }
    EXPECT_TRUE(
        std::isinf(WaitSeconds({{.service_s = 0.01, .rate_s = 100, .periodic = periodic}}, 0.01)));
  }
}

// What 99 of 100 waited in a queue that was played: a run takes one second, requests come by
// chance.
double PlayedWait(double rate_s) {
  constexpr int kRequests = 400000;
  std::mt19937_64 random(7);
  std::exponential_distribution<double> gap(rate_s);
  std::vector<double> waits;
  double wait = 0;
  for (int i = 0; i < kRequests; ++i) {
    wait = std::max(0.0, wait + 1 - gap(random));
    waits.push_back(wait);
  }
  std::sort(waits.begin(), waits.end());
  return waits[kRequests * 99 / 100];
}

TEST(ServingTest, NinetyNineOfHundredWaitAtMostTheBound) {
  for (const double rate_s : {0.3, 0.5, 0.8}) {
    const double bound = WaitSeconds({{.service_s = 1, .rate_s = rate_s, .periodic = false}}, 1);
    const double played = PlayedWait(rate_s);
    EXPECT_GT(bound, played) << rate_s;
    EXPECT_LT(bound, 1.7 * played) << rate_s;
  }
}

// ---- latency, busy, power

TEST(ServingTest, TheLatencyIsDecodingWaitAndRun) {
  const ServingOffer one = OfferFor(Videos(1)), four = OfferFor(Videos(4));
  ASSERT_TRUE(one.decode_s && four.decode_s);
  EXPECT_NEAR(*one.decode_s, 1.0 / 903, 1e-9) << "an L4 decodes 903 pictures a second";
  EXPECT_DOUBLE_EQ(*four.decode_s, *one.decode_s) << "each has an engine";
  EXPECT_NEAR(one.latency_s.mid, *one.decode_s + 0.01, 1e-9);
  EXPECT_NEAR(four.latency_s.mid, *four.decode_s + 0.04, 1e-9);
  EXPECT_NEAR(four.latency_s.low, *four.decode_s + 0.8 * 0.04, 1e-9);
  EXPECT_NEAR(four.latency_s.high, *four.decode_s + 1.3 * 0.04, 1e-9);
  EXPECT_DOUBLE_EQ(four.busy.mid, 0.4);
  EXPECT_DOUBLE_EQ(four.busy.high, 0.52);
  EXPECT_DOUBLE_EQ(four.models[0].per_s, 40);
}

TEST(ServingTest, ABatchWaitsForItsLastPicture) {
  ServingLoad load = Videos(4);
  load.models[0].batch = 4;
  const ServingOffer offer = OfferFor(load);
  EXPECT_NEAR(offer.latency_s.mid, *offer.decode_s + 0.1 + 0.01, 1e-9) << "a picture's time, a run";
  EXPECT_DOUBLE_EQ(offer.busy.mid, 0.1);
}

TEST(ServingTest, AnIdleBoardTakesItsIdlePowerAndABusyOneWhatTrainingTakes) {
  const double board_w = *Device("l4").power_w;
  const ServingOffer idle = OfferFor(Requests(1e-6)), busy = OfferFor(Requests(99.9));
  ASSERT_TRUE(idle.power_w && busy.power_w);
  EXPECT_NEAR(idle.power_w->mid, 0.24 * board_w, 0.01);
  EXPECT_NEAR(busy.power_w->mid, 0.85 * board_w, 0.1);
  EXPECT_LT(idle.power_w->low, idle.power_w->mid);
  EXPECT_LT(idle.power_w->mid, idle.power_w->high);
}

TEST(ServingTest, WithoutARateTheDeviceAnswersOneAfterAnother) {
  ServingLoad load;
  load.models = {{.model = "net", .batch = 8}};
  const ServingOffer offer = OfferFor(load);
  EXPECT_EQ(offer.busy.mid, 1);
  EXPECT_DOUBLE_EQ(offer.models[0].per_s, 800);
  EXPECT_DOUBLE_EQ(offer.latency_s.mid, 0.01);
  EXPECT_TRUE(offer.is_allowed());
  load.models[0].copies = 4;
  const ServingOffer four = OfferFor(load);
  EXPECT_DOUBLE_EQ(four.models[0].per_s, 200) << "of each copy";
  EXPECT_DOUBLE_EQ(four.latency_s.mid, 0.04) << "the others come between";
}

// ---- language models

ModelCost Tokens(double token_s) {
  ModelCost cost = TenMilliseconds();
  cost.prefill_s = 0.05;
  cost.token_s = token_s;
  cost.cache_bytes = 64 * kMiB;
  return cost;
}

TEST(ServingTest, ARequestOfALanguageModelIsAPromptAndItsPartOfTheTokens) {
  ServingLoad load;
  load.models = {{.model = "llama", .batch = 4, .rate_s = 0.5, .tokens = TokenCounts{100, 10}}};
  const ServingOffer offer = MakeServingOffer(Device("l4"), load, {Tokens(0.02)}, 20 * kGiB);
  EXPECT_DOUBLE_EQ(offer.models[0].service_s, 0.05 + 10 * 0.02 / 4);
  EXPECT_DOUBLE_EQ(offer.models[0].answer_s, 0.05 + 10 * 0.02);
  EXPECT_DOUBLE_EQ(offer.models[0].per_s, 5) << "tokens";
  load.models[0].rate_s.reset();
  const ServingOffer most = MakeServingOffer(Device("l4"), load, {Tokens(0.02)}, 20 * kGiB);
  EXPECT_DOUBLE_EQ(most.models[0].per_s, 40 / (4 * 0.05 + 10 * 0.02));
  EXPECT_DOUBLE_EQ(most.latency_s.mid, 4 * 0.05 + 10 * 0.02);
}

// ---- memory

TEST(ServingTest, CopiesHoldEverythingAndModelsOfAProcessShareTheirScratch) {
  ModelCost large = TenMilliseconds();
  large.scratch_bytes = 70 * kMiB;
  const std::vector<ModelCost> costs = {TenMilliseconds(), large};
  EXPECT_EQ(ServingBytes({{.model = "a"}, {.model = "b"}}, costs), (2 * 100 + 70 + 600) * kMiB);
  EXPECT_EQ(ServingBytes({{.model = "a", .copies = 4}}, {costs[0]}), 4 * (100 + 50 + 600) * kMiB);
  EXPECT_GT(ServingBytes({{.model = "a", .copies = int64_t{1} << 50}}, {costs[0]}),
            int64_t{1} << 60);
}

// ---- refusals

TEST(ServingTest, TheUpperEndOfWhatIsEstimatedMustKeepTheLimits) {
  const auto refusals = [](const ServingLimits& limits, double rate_s) {
    ServingLoad load = Requests(rate_s);
    load.limits = limits;
    return OfferFor(load).refusals;
  };
  const ServingOffer offer = OfferFor(Requests(10));
  EXPECT_EQ(refusals({}, 10), Names{});
  EXPECT_EQ(refusals({.latency_s = offer.latency_s.high}, 10), Names{});
  EXPECT_EQ(refusals({.latency_s = 0.99 * offer.latency_s.high}, 10), Names{"latency"});
  EXPECT_EQ(refusals({.power_w = offer.power_w->high}, 10), Names{});
  EXPECT_EQ(refusals({.power_w = 0.99 * offer.power_w->high}, 10), Names{"power"});
  EXPECT_EQ(refusals({.memory_bytes = offer.peak_bytes}, 10), Names{});
  EXPECT_EQ(refusals({.memory_bytes = offer.peak_bytes - 1}, 10), Names{"memory"});
  EXPECT_EQ(refusals({}, 61), Names{}) << "61 runs of at most 13 ms";
  EXPECT_EQ(refusals({}, 62), Names{"rate"});
  EXPECT_EQ(refusals({.latency_s = 1}, 200), (Names{"rate", "latency"})) << "no queue ends";
}

TEST(ServingTest, PowerThatIsNotKnownKeepsNoLimit) {
  Hardware unknown = Device("l4");
  unknown.power_w.reset();
  ServingLoad load = Requests(1);
  EXPECT_TRUE(MakeServingOffer(unknown, load, {TenMilliseconds()}, kGiB).is_allowed());
  load.limits.power_w = 1e6;
  EXPECT_EQ(MakeServingOffer(unknown, load, {TenMilliseconds()}, kGiB).refusals, Names{"power"});
}

TEST(ServingTest, DecodingThatIsNotKnownIsSaidAndKeepsNoLatency) {
  ServingLoad load = Videos(1);
  load.streams[0].pictures.codec = "av1";
  const ServingOffer offer = OfferFor(load, "mi300x");
  EXPECT_FALSE(offer.decode_s);
  EXPECT_EQ(offer.decoder, "?");
  EXPECT_EQ(offer.notes, Names{"how fast it decodes is not known, and not in the latency"});
  EXPECT_TRUE(offer.is_allowed());
  load.limits.latency_s = 10;
  EXPECT_EQ(OfferFor(load, "mi300x").refusals, Names{"decoding"});
}

TEST(ServingTest, MoreVideosThanTheEnginesDecodeAreRefused) {
  ServingLoad load = Videos(400);
  load.models[0].rate_s = 1e-3;
  EXPECT_EQ(OfferFor(load, "l4").refusals, Names{"decoding"}) << "4000 of 3612 pictures a second";
}

// ---- order

TEST(ServingTest, AllowedOffersComeFirstByTheOrder) {
  ServingLoad load = Requests(10);
  load.limits.power_w = 150;
  std::vector<ServingOffer> offers = {OfferFor(load, "h100-sxm"), OfferFor(load, "t4"),
                                      OfferFor(load, "l4")};
  RankServing(offers, ServingOrder::kPower);
  EXPECT_EQ(offers[0].device, "t4");
  EXPECT_EQ(offers[1].device, "l4");
  EXPECT_EQ(offers[2].refusals, Names{"power"});
}

}  // namespace
}  // namespace ridge

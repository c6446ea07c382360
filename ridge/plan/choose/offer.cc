#include "ridge/plan/choose/offer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "ridge/core/rounding.h"
#include "ridge/core/units.h"
#include "ridge/plan/hardware/planned_device.h"

namespace ridge {
namespace {

// ---- power

constexpr double kHostWatts = 200;    // board, processor, memory, disks
constexpr double kBoardShare = 0.85;  // of its power that a board takes in training
constexpr double kSupplyShare = 0.9;  // of a supply that may be used
constexpr double kSupplyStep = 50;

std::optional<double> PlugWatts(const DeviceGroup& group) {
  if (!group.hardware->power_w) return std::nullopt;
  const double boards_w =
      *group.hardware->power_w * kBoardShare * static_cast<double>(group.per_node);
  return (boards_w + kHostWatts) * static_cast<double>(group.nodes);
}

bool IsOwn(const Hardware& hardware, const ChooseLimits& limits) {
  return std::find(limits.own.begin(), limits.own.end(), hardware.id) != limits.own.end();
}

// A step waits for the slowest device and for the sums; failures take their share of the whole.
void TakeTime(const DeviceStep& step, const TrainingLength& length, Offer& offer) {
  const Communication sums = step.layout ? Communication{step.collectives_s, step.collectives_s}
                                         : SumGradients(step.group, step.gradients, step.step_s);
  const double slowest = StragglerFactor(step.group.count());
  offer.exposed_s = sums.exposed_s;
  offer.sum_s = sums.busy_s;
  if (step.group.count() > 1) offer.sum_source = AllReduceSource(step.group);
  offer.lost_share = LostShare(step.group.count());
  offer.step_s = slowest * step.step_s + offer.exposed_s;
  const auto useful = static_cast<double>(CeilDiv(length.samples, length.batch) * length.epochs);
  const double updates = useful / (1 - offer.lost_share);
  offer.time_s = updates * offer.step_s;
  offer.low_s = updates * (slowest * step.low_s + offer.exposed_s);
  offer.high_s = updates * (slowest * step.high_s + offer.exposed_s);
  const auto rate = [&](double seconds) {
    return seconds > 0 ? static_cast<double>(length.batch) * useful / seconds : 0;
  };
  offer.samples_s = rate(offer.time_s);
  offer.samples_low_s = rate(offer.high_s);
  offer.samples_high_s = rate(offer.low_s);
}

void TakeCost(const DeviceStep& step, const ChooseLimits& limits, Offer& offer) {
  constexpr double kHour = 3600;
  const Hardware& hardware = *step.group.hardware;
  const auto nodes = static_cast<double>(step.group.nodes);
  offer.power_w = PlugWatts(step.group);
  offer.supply_w = SupplyWatts(hardware, step.group.per_node);
  if (offer.power_w) offer.energy_kwh = *offer.power_w * offer.time_s / kHour / 1000;
  const std::optional<Rent> rent = CheapestRent(hardware.id, step.group.per_node);
  if (rent) offer.rent_usd_hour = rent->usd_hour * nodes;
  if (IsOwn(hardware, limits)) {
    if (offer.energy_kwh) offer.usd = *offer.energy_kwh * limits.terms.usd_kwh * limits.terms.pue;
    offer.price = "electricity";
  } else if (rent) {
    offer.usd = *offer.rent_usd_hour * offer.time_s / kHour;
    offer.price = rent->price->provider + ", " + rent->price->date;
  }
}

void TakePurchase(const DeviceStep& step, const ChooseLimits& limits, Offer& offer) {
  const auto purchase =
      std::find_if(limits.buy.begin(), limits.buy.end(),
                   [&](const Purchase& other) { return other.device == step.group.hardware->id; });
  if (purchase == limits.buy.end()) return;
  offer.buy_usd = purchase->usd * static_cast<double>(step.group.count());
  if (!offer.power_w) return;
  OwnershipTerms terms = limits.terms;  // of all machines
  if (terms.host_usd) *terms.host_usd *= static_cast<double>(step.group.nodes);
  if (limits.tells_ownership)
    offer.ownership = OwnershipOf(*offer.buy_usd, *offer.power_w, offer.time_s, terms);
  if (offer.rent_usd_hour)
    offer.pays_off_h = PayOffHours(*offer.rent_usd_hour, *offer.buy_usd, *offer.power_w, terms);
}

// What the step asks of the device, and the devices of their machine.
void TakeFit(const DeviceStep& step, Offer& offer) {
  offer.balance =
      BalanceOf(*step.group.hardware, {step.flops, step.bytes, step.step_s}, step.peak_flops_per_s);
  offer.sustained_share = SustainedShare(*step.group.hardware, step.precision);
  offer.chassis = ChassisOf(*step.group.hardware, step.group.per_node);
}

// The upper end of what is estimated decides.
void TakeRefusals(const ChooseLimits& limits, Offer& offer) {
  const auto refuse = [&](bool breaks, const char* what) {
    if (breaks) offer.refusals.emplace_back(what);
  };
  refuse(offer.peak_bytes > offer.limit_bytes, "memory");
  refuse(limits.deadline_s && offer.high_s > *limits.deadline_s, "deadline");
  const double worst = offer.time_s > 0 ? offer.high_s / offer.time_s : 1;
  refuse(limits.budget_usd && (!offer.usd || *offer.usd * worst > *limits.budget_usd), "budget");
  refuse(limits.power_w && (!offer.supply_w || *offer.supply_w > *limits.power_w), "power");
}

// ---- notes

// The compute slices of a device share its memory in a power of two of parts: 7 of an A100 in 8.
int64_t PartsOfMemory(int64_t mig_slices) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(mig_slices)));
}

// What one device has and this training leaves unused.
void NoteUnused(const DeviceStep& step, Offer& offer) {
  const Hardware& hardware = *step.group.hardware;
  if (step.group.count() > 1) return;
  const bool has_link = hardware.peer_link_gb_s.value_or(0) > 0;
  if (has_link && !hardware.nvlink_bridge.value_or(false))
    offer.notes.push_back(fmt::format("its {} is not used", hardware.peer_link));
  const auto slices = static_cast<int64_t>(hardware.mig_slices.value_or(0));
  if (slices > 1 && offer.peak_bytes <= offer.limit_bytes / PartsOfMemory(slices))
    offer.notes.push_back(fmt::format("its memory fits one of {} MIG slices", slices));
}

void NotePurchase(Offer& offer) {
  if (!offer.buy_usd) return;
  std::string note = fmt::format("bought for {} USD", FormatCount(*offer.buy_usd));
  if (offer.pays_off_h)
    note += fmt::format(": pays off after {} h of use", FormatCount(std::ceil(*offer.pays_off_h)));
  offer.notes.push_back(std::move(note));
}

// Below these shares a note says so.
constexpr double kUsualSustained = 0.8;

void NoteFit(Offer& offer) {
  if (offer.balance && offer.balance->headroom() < kUsualHeadroom)
    offer.notes.push_back(
        fmt::format("its memory has {} the bandwidth that the step uses, less than {:g} x",
                    offer.balance->HeadroomText(), kUsualHeadroom));
  if (offer.sustained_share < kUsualSustained)
    offer.notes.push_back(fmt::format("sustains {:.0f} % of its sheet's peak within its power",
                                      100 * offer.sustained_share));
  const int64_t slots = offer.chassis.slots.value_or(0), lanes = offer.chassis.lanes.value_or(0);
  if (slots > kMostSlots) {
    offer.notes.push_back(
        fmt::format("takes {} slots, a chassis has {} or {}", slots, kAtxSlots, kMostSlots));
  } else if (slots > kAtxSlots) {
    offer.notes.push_back(fmt::format("takes {} slots, an ATX board has {}", slots, kAtxSlots));
  }
  if (offer.count > 1 && lanes > 0)
    offer.notes.push_back(fmt::format("wants {} lanes of PCIe", lanes));
}

void TakeNotes(const DeviceStep& step, Offer& offer) {
  const Hardware& hardware = *step.group.hardware;
  if (step.group.per_node > 2 && hardware.nvlink_bridge.value_or(false))
    offer.notes.emplace_back("its bridge joins two; more go over the host");
  if (offer.exposed_s > 0.1 * offer.step_s)
    offer.notes.push_back(fmt::format("waits {:.0f} % of a step for {}",
                                      100 * offer.exposed_s / offer.step_s,
                                      offer.layout ? "other devices" : "gradients"));
  if (offer.lost_share > 0.01)
    offer.notes.push_back(
        fmt::format("loses {:.1f} % of the time to failures", 100 * offer.lost_share));
  if (hardware.dies.value_or(1) > 1)
    offer.notes.emplace_back("counts dies; the energy is that of their boards");
  if (hardware.cooling == "passive") offer.notes.emplace_back("passive: needs a server's fans");
  NoteFit(offer);
  NoteUnused(step, offer);
  NotePurchase(offer);
}

double KeyOf(const Offer& offer, OfferOrder order) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  switch (order) {
    case OfferOrder::kCost:
      return offer.usd.value_or(kUnknown);
    case OfferOrder::kEnergy:
      return offer.energy_kwh.value_or(kUnknown);
    case OfferOrder::kTime:
      return offer.time_s;
  }
  return kUnknown;
}

}  // namespace

std::optional<double> SupplyWatts(const Hardware& hardware, int64_t count) {
  if (!hardware.power_w) return std::nullopt;
  const double watts = (*hardware.power_w * static_cast<double>(count) + kHostWatts) / kSupplyShare;
  return kSupplyStep * std::ceil(watts / kSupplyStep - 1e-9);
}

DeviceStep LayoutStep(const DeviceGroup& group, const std::string& precision,
                      const LayoutCost& cost, int64_t limit_bytes, double low, double high) {
  const LayoutSeconds& seconds = cost.seconds;
  DeviceStep step;
  step.group = group;
  step.precision = precision;
  step.step_s = seconds.kernels + seconds.recompute + seconds.pipeline + seconds.update;
  step.low_s = low * step.step_s;
  step.high_s = high * step.step_s;
  step.peak_bytes = step.peak_low_bytes = cost.bytes.all();
  step.limit_bytes = limit_bytes;
  step.layout = cost.choice;
  step.collectives_s = seconds.tensor + seconds.send + seconds.data;
  step.flops = cost.flops;
  return step;
}

Offer MakeOffer(const DeviceStep& step, const TrainingLength& length, const ChooseLimits& limits) {
  Offer offer;
  offer.device = step.group.hardware->id;
  offer.count = step.group.count();
  offer.nodes = step.group.nodes;
  offer.precision = step.precision;
  offer.layout = step.layout;
  offer.peak_bytes = step.peak_bytes;
  offer.peak_low_bytes = step.peak_low_bytes;
  offer.limit_bytes = step.limit_bytes;
  TakeTime(step, length, offer);
  TakeCost(step, limits, offer);
  TakePurchase(step, limits, offer);
  TakeFit(step, offer);
  TakeRefusals(limits, offer);
  TakeNotes(step, offer);
  return offer;
}

void TakeLayout(Offer layout, std::vector<Offer>& offers) {
  const auto same = std::find_if(offers.begin(), offers.end(), [&](const Offer& offer) {
    return std::tie(offer.device, offer.count, offer.nodes, offer.precision) ==
           std::tie(layout.device, layout.count, layout.nodes, layout.precision);
  });
  if (same == offers.end()) {
    offers.push_back(std::move(layout));
  } else if (same->peak_bytes > same->limit_bytes || layout.time_s < same->time_s) {
    *same = std::move(layout);
  }
}

void TakeLinearShares(std::vector<Offer>& offers) {
  const std::vector<Offer> all = offers;
  for (Offer& offer : offers) {
    const auto one = std::find_if(all.begin(), all.end(), [&](const Offer& other) {
      return other.device == offer.device && other.precision == offer.precision && other.count == 1;
    });
    if (one != all.end() && one->samples_s > 0)
      offer.linear_share = offer.samples_s / one->samples_s / static_cast<double>(offer.count);
  }
}

void RankOffers(std::vector<Offer>& offers, OfferOrder order) {
  const auto key = [&](const Offer& offer) {
    return std::make_tuple(!offer.is_allowed(), KeyOf(offer, order), offer.time_s, offer.device,
                           offer.count);
  };
  std::sort(offers.begin(), offers.end(),
            [&](const Offer& a, const Offer& b) { return key(a) < key(b); });
}

}  // namespace ridge

// Offers: a training on equal devices, of one machine or of several, with its time, cost, energy
// and power, and why it is refused.
//
// All numbers are modelled: nothing runs.  The devices share one global batch, data parallel or in
// a layout (layout_cost.h).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/plan/choose/balance.h"
#include "ridge/plan/choose/chassis.h"
#include "ridge/plan/choose/communication.h"
#include "ridge/plan/choose/layout_cost.h"
#include "ridge/plan/choose/ownership.h"
#include "ridge/plan/hardware/hardware.h"
#include "ridge/plan/hardware/prices.h"

namespace ridge {

// How long the training is.
struct TrainingLength {
  int64_t samples = 0;  // of one epoch
  int64_t epochs = 1;
  int64_t batch = 1;  // of an update, over all devices
};

// A step of one device of the group on its part of the batch, as planned.
struct DeviceStep {
  DeviceGroup group;
  std::string precision;  // "bf16"
  double step_s = 0, low_s = 0, high_s = 0;
  int64_t peak_bytes = 0, limit_bytes = 0;
  int64_t peak_low_bytes = 0;  // of the interval whose upper end is peak_bytes
  int64_t variable_bytes = 0;  // of the peak: parameters and the state of their optimizer
  std::vector<GradientReady> gradients = {};  // that the devices add up in each update
  double flops = 0, bytes = 0;                // of its kernels; 0: not known
  double peak_flops_per_s = 0;                // of the device's products, as the sheet has it
  int64_t nodes = 0;                          // of its graph
  std::optional<LayoutChoice> layout = {};    // then `gradients` is empty, and for it stands:
  double collectives_s = 0;                   // of the layout, that kernels wait for
};

// A layout of the group's devices instead of data parallel training; `low` and `high`: how many
// times as long kernels may take.
DeviceStep LayoutStep(const DeviceGroup& group, const std::string& precision,
                      const LayoutCost& cost, int64_t limit_bytes, double low, double high);

// A device that could be bought instead of rented.
struct Purchase {
  std::string device;  // its id
  double usd = 0;      // of one
};

// What the user allows and has.
struct ChooseLimits {
  std::optional<double> deadline_s = {}, budget_usd = {}, power_w = {};
  std::vector<std::string> own = {};  // devices that are there: they cost electricity alone
  std::vector<Purchase> buy = {};     // none of them in `own`
  OwnershipTerms terms = {};          // of devices of one's own and of bought ones
  bool tells_ownership = false;       // --years: what bought ones cost over the years
};

struct Offer {
  std::string device;
  int64_t count = 1;  // of devices, in all machines
  int64_t nodes = 1;  // machines
  std::string precision = {};
  std::optional<LayoutChoice> layout = {};  // none: data parallel
  int64_t peak_bytes = 0, limit_bytes = 0, peak_low_bytes = 0;
  double step_s = 0, exposed_s = 0;          // of an update; what of it waits for the other devices
  double sum_s = 0;                          // of the sums of gradients, if nothing ran beside them
  std::string sum_source = {};               // "modelled"; of one device empty
  double lost_share = 0;                     // of the time, to failures of many devices
  double time_s = 0, low_s = 0, high_s = 0;  // of the whole training
  double samples_s = 0, samples_low_s = 0, samples_high_s = 0;  // samples a second, of all devices
  // Of the rate of one such device times `count`; null: none of one is offered (TakeLinearShares).
  std::optional<double> linear_share = {};
  std::optional<double> usd = {};            // at time_s; null: nobody is known to rent it out
  std::string price = {};                    // "RunPod, 2025-07-13", "electricity"
  std::optional<double> rent_usd_hour = {};  // of all devices; null: nobody is known to
  std::optional<double> buy_usd = {};        // of all devices; null: no price was given
  // Hours of use after which rent and what the bought devices cost with their electricity are
  // equal; null: no price, nobody rents it out, or its power is not known.  The host counts where
  // it has a price.
  std::optional<double> pays_off_h = {};
  std::optional<Ownership> ownership = {};  // of bought devices, where it was asked for
  std::optional<double> energy_kwh = {},
                        power_w = {};      // at the plug; null: the board's power is not known
  std::optional<double> supply_w = {};     // that a machine's supply needs, with headroom
  std::optional<Balance> balance = {};     // of one device's step
  double sustained_share = 1;              // of its sheet's peak, within its power
  Chassis chassis = {};                    // of the cards of a machine
  std::vector<std::string> refusals = {};  // what it breaks: "deadline", "budget", ...; empty: fits
  std::vector<std::string> notes = {};     // what else to know

  bool is_allowed() const { return refusals.empty(); }
};

// Watts that a supply needs for so many of the boards and their host, with 10 % of headroom,
// rounded up to 50; null where the board's power is not known.
std::optional<double> SupplyWatts(const Hardware& hardware, int64_t count);

Offer MakeOffer(const DeviceStep& step, const TrainingLength& length, const ChooseLimits& limits);

// A layout takes the place of the data parallel offer of the same devices where that does not fit
// or takes longer.
void TakeLayout(Offer layout, std::vector<Offer>& offers);

// Fills linear_share.
void TakeLinearShares(std::vector<Offer>& offers);

enum class OfferOrder { kCost, kTime, kEnergy };

// Allowed offers first, each group by `order`; those whose key is not known last, equal ones by
// time and name.
void RankOffers(std::vector<Offer>& offers, OfferOrder order);

}  // namespace ridge

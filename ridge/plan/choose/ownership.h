// Ownership: what bought devices cost over the years that they are used.
//
//   hours = years * 8760 * use
//   usd   = devices * price + host + hours * kW at the plug * pue * usd_kwh
// Nothing is charged while the machine is idle, and nothing for room, people or money.
#pragma once
#include <optional>

namespace ridge {

struct OwnershipTerms {
  double years = 3;
  double use = 1;                       // share of all hours in which it trains
  double pue = 1;                       // power of the building over that of the machine
  double usd_kwh = 0.15;                // of electricity
  std::optional<double> host_usd = {};  // of the machine around the devices; null: left out
};

struct Ownership {
  double hours = 0;        // of use
  double devices_usd = 0;  // the purchase of all devices
  double host_usd = 0;     // 0 where no price was given
  double electricity_usd = 0;
  double usd = 0;       // all of it
  double usd_hour = 0;  // of an hour of use
  double usd_training = 0;
  bool has_host = false;
};

// REQUIRES: years and use above 0.
Ownership OwnershipOf(double devices_usd, double power_w, double training_s,
                      const OwnershipTerms& terms);

// Hours of use after which rent has cost as much as the purchase and its electricity; none where
// an hour's rent is no more than its electricity.
std::optional<double> PayOffHours(double rent_usd_hour, double devices_usd, double power_w,
                                  const OwnershipTerms& terms);

}  // namespace ridge

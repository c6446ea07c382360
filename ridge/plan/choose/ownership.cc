#include "ridge/plan/choose/ownership.h"

namespace ridge {
namespace {

constexpr double kHoursOfYear = 8760, kSecondsOfHour = 3600;

double ElectricityUsdHour(double power_w, const OwnershipTerms& terms) {
  return power_w / 1000 * terms.pue * terms.usd_kwh;
}

}  // namespace

Ownership OwnershipOf(double devices_usd, double power_w, double training_s,
                      const OwnershipTerms& terms) {
  Ownership cost;
  cost.hours = terms.years * kHoursOfYear * terms.use;
  cost.devices_usd = devices_usd;
  cost.host_usd = terms.host_usd.value_or(0);
  cost.has_host = terms.host_usd.has_value();
  cost.electricity_usd = cost.hours * ElectricityUsdHour(power_w, terms);
  cost.usd = cost.devices_usd + cost.host_usd + cost.electricity_usd;
  cost.usd_hour = cost.usd / cost.hours;
  cost.usd_training = cost.usd_hour * training_s / kSecondsOfHour;
  return cost;
}

std::optional<double> PayOffHours(double rent_usd_hour, double devices_usd, double power_w,
                                  const OwnershipTerms& terms) {
  const double saved_usd_hour = rent_usd_hour - ElectricityUsdHour(power_w, terms);
  if (saved_usd_hour <= 0) return std::nullopt;
  return (devices_usd + terms.host_usd.value_or(0)) / saved_usd_hour;
}

}  // namespace ridge

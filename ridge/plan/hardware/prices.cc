#include "ridge/plan/hardware/prices.h"

#include "ridge/plan/hardware/embedded_list.h"
#include "ridge/plan/hardware/price_list.h"

namespace ridge {
namespace {

CloudPrice PriceOf(const toml::table& row) {
  return {.device = TextAt(row, "device"),
          .provider = TextAt(row, "provider"),
          .instance = TextAt(row, "instance"),
          .region = TextAt(row, "region"),
          .date = TextAt(row, "date"),
          .source = TextAt(row, "source"),
          .devices = row["devices"].value<int64_t>().value_or(1),
          .usd_hour = row["usd_hour"].value<double>().value_or(0)};
}

std::string Year(const CloudPrice& price) { return price.date.substr(0, 4); }

std::optional<Rent> RentOf(const CloudPrice& price, int64_t count) {
  if (price.by_device()) return Rent{&price, price.usd_hour * static_cast<double>(count)};
  if (price.devices < count) return std::nullopt;
  return Rent{&price, price.usd_hour * static_cast<double>(price.devices)};
}

// A newer list, or the same year and less money.
bool IsBetter(const Rent& rent, const Rent& best) {
  if (Year(*rent.price) != Year(*best.price)) return Year(*rent.price) > Year(*best.price);
  return rent.usd_hour < best.usd_hour;
}

}  // namespace

bool CloudPrice::by_device() const {
  return devices == 1 && (instance.empty() || instance == "secure" || instance == "community");
}

const std::vector<CloudPrice>& CloudPrices() {
  static const std::vector<CloudPrice> all =
      ReadEmbeddedList(kPriceList, "prices.toml", "price", PriceOf);
  return all;
}

std::optional<Rent> CheapestRent(const std::string& device, int64_t count) {
  std::optional<Rent> best;
  for (const CloudPrice& price : CloudPrices()) {
    if (price.device != device) continue;
    const std::optional<Rent> rent = RentOf(price, count);
    if (rent && (!best || IsBetter(*rent, *best))) best = rent;
  }
  return best;
}

}  // namespace ridge

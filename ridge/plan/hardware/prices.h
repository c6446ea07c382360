// Prices: what clouds take for a device by the hour, from a list with dates and sources.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ridge {

struct CloudPrice {
  std::string device;                      // its id in the catalog
  std::string provider, instance, region;  // "AWS", "p5.48xlarge", "us-east-1"; may be empty
  std::string date;                        // of the list: "2026-01-21", "2023-10"
  std::string source;
  int64_t devices = 1;  // of the instance
  double usd_hour = 0;  // of one of them

  // Rented by the device: any number of them is to be had.
  bool by_device() const;
};

// The program's own list, in the order of its file (prices.toml).
const std::vector<CloudPrice>& CloudPrices();

// What `count` devices in one machine cost.
struct Rent {
  const CloudPrice* price = nullptr;
  double usd_hour = 0;  // of all: an instance is rented whole
};

// The cheapest among the newest lists, by year; none where nobody rents out so many.
std::optional<Rent> CheapestRent(const std::string& device, int64_t count);

}  // namespace ridge

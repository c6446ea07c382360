// Layouts for `ridge choose`: offers of several devices that do not fit, or are slower, data
// parallel.
#pragma once
#include <string>
#include <vector>

#include "ridge/cli/choose_verb.h"

namespace ridge::cli {

// A device, and the groups of it whose best layout is wanted.
struct WantedLayouts {
  const Hardware* hardware = nullptr;
  std::vector<DeviceGroup> groups;
};

// What the offers of a training share.
struct Training {
  TrainingLength length;
  ChooseLimits limits;
  OfferOrder order = OfferOrder::kCost;
  double update_flops = 0;  // 0: not known
  int64_t nodes = 0;        // of its graph
  int64_t variable_bytes = 0;
};

struct SearchedOffers {
  std::vector<Offer> offers;
  std::vector<std::string> not_searched;  // devices
};

// Offers of the best layouts that fit.  Searches of large graphs take long, so of many devices
// those are searched that promise most by `order`: their sheets' peak at its price and power.
SearchedOffers SearchOffers(const ChooseVerb& verb, std::vector<WantedLayouts> wanted,
                            const Training& training);

}  // namespace ridge::cli

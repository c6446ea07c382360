// What is known of each offer beyond its row (`ridge choose --why DEVICE`), and what comes next.
#pragma once
#include <string>
#include <vector>

#include "ridge/report/choose_report.h"

namespace ridge {

// A paragraph an offer of the device, each of its numbers with what it is compared with.
// REQUIRES: an offer of it.
std::string OfferDetails(const ChooseTable& table, const std::string& device,
                         const Terminal& terminal);

// "2 x h100-sxm: time x 0.52, cost x 1.04", what the chassis lacks behind it.
std::vector<std::string> UpgradeLines(const ChooseTable& table);

// "1 x rtx3090": a name for an offer.
std::string OfferName(const Offer& offer);

}  // namespace ridge

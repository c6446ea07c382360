// Upgrades: what comes after an offer: twice as many of its device, and later devices of its kind.
#pragma once
#include <string>
#include <vector>

#include "ridge/plan/choose/offer.h"

namespace ridge {

struct Upgrade {
  Offer offer;
  double time_ratio = 1;                  // its time over that of the offer before
  std::optional<double> cost_ratio = {};  // null: one of the two costs is not known
  std::string missing;                    // MissingFor: "" where the same chassis takes it
};

// Later devices of the catalog that could take the place of `device`: of the same vendor, form,
// cooling and product line, with no less memory.  Oldest first.
std::vector<const Hardware*> Successors(const Hardware& device,
                                        const std::vector<Hardware>& catalog);

Upgrade MakeUpgrade(const Hardware& from, const Offer& before, const Hardware& to, Offer offer);

// Of offers on successors, oldest first, the first four of those that are allowed and faster than
// `before` and all earlier ones.
std::vector<Upgrade> FasterOnes(double before_s, std::vector<Upgrade> upgrades);

}  // namespace ridge

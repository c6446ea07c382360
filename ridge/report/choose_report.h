// How the choice of hardware is shown: the best offer first, then a table, then what was refused.
#pragma once
#include <string>
#include <vector>

#include "ridge/plan/choose/upgrades.h"
#include "ridge/report/terminal.h"

namespace ridge {

struct ChooseTable {
  std::string title;                 // "resnet50, batch 256, 90 epochs of 1,281,167 samples"
  std::vector<Offer> offers;         // ranked
  std::vector<std::string> skipped;  // devices that nothing can be planned for
  // Devices whose memory is below what parameters and optimizer state alone take.
  std::vector<std::string> too_small = {};
  int64_t variable_bytes = 0;                  // what these take
  std::vector<std::string> not_searched = {};  // devices whose layouts would have taken too long
  size_t rows = 12;                            // of allowed offers, at most
  std::vector<Upgrade> upgrades = {};          // of the first offer
  OwnershipTerms terms = {};
};

// REQUIRES: an offer.
std::string ChooseReport(const ChooseTable& table, const Terminal& terminal);

// "cheapest: 1 x rtx4090, bf16: 1 h 07 min (...)", and so on, of the allowed offers.
std::vector<std::string> BestOffers(const std::vector<Offer>& offers);

// Why nothing is allowed: how many offers keep each limit alone, and which offer comes nearest.
// REQUIRES: offers, none of them allowed.
std::string NothingAllowedText(const std::vector<Offer>& offers);

// "; 61 devices are too small for parameters and optimizer state alone (1.05 TiB). hint: ...";
// empty: none is.
std::string TooSmallText(const ChooseTable& table);

// One object with the keys of the command line's contract; times are seconds, sizes bytes.
std::string ChooseJson(const ChooseTable& table);

}  // namespace ridge

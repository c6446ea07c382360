// How a choice of devices for serving is shown: the best first, then a table, then what was
// refused.
#pragma once
#include <string>
#include <vector>

#include "ridge/plan/choose/serving.h"
#include "ridge/report/terminal.h"

namespace ridge {

struct ServingTable {
  std::string title;                 // "resnet50, 4 x h264 1920x1080 at 30/s"
  std::vector<ServingOffer> offers;  // ranked; of one or several variants of a load
  std::vector<std::string> skipped;  // devices that nothing can be planned for
  size_t rows = 12;                  // of allowed offers, at most
};

// "resnet50, batch 4, 4 x h264 1920x1080 at 30/s"; of a scenario its name and its models.
std::string ServingTitle(const ServingLoad& load);

// REQUIRES: an offer.
std::string ServingReport(const ServingTable& table, const Terminal& terminal);

// Why nothing is allowed: how many offers keep each limit alone, and which offer comes nearest.
// REQUIRES: offers, none of them allowed.
std::string NothingServesText(const std::vector<ServingOffer>& offers);

// One object with the keys of the command line's contract; times are seconds, sizes bytes.
std::string ServingJson(const ServingTable& table);

}  // namespace ridge

// Scaling curves: samples a second by the number of equal devices, as `ridge choose` offers them.
#pragma once
#include <string>
#include <vector>

#include "ridge/plan/choose/offer.h"

namespace ridge {

// A chart a device with several counts, in the order in which `offers` first name one: the rate
// with its range, and dashed that of one device times the count.  At most `most` charts; "" for
// none.
std::string ScalingCharts(const std::vector<Offer>& offers, size_t most);

}  // namespace ridge

// Convolutions by every implementation that oneDNN has, for whoever measures which is fastest.
#pragma once
#include <vector>

#include "ridge/backend/cpu/kernel_list.h"

namespace ridge::cpu {

// Appends choices that are not there yet, with so little efficiency that only a measurement takes
// them.  Nothing for other operators than conv and its gradients.
void OfferConvVariants(const Question& q, std::vector<KernelChoice>& choices);

}  // namespace ridge::cpu

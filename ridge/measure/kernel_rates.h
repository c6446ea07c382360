// Rates of this machine's kernels, from short trainings of built-in models.
//
// Within a step a kernel finds what its neighbours leave in the caches; alone and again and again
// it is up to five times as fast.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ridge/core/device_profile.h"
#include "ridge/train/options/machine.h"

namespace ridge {

// By RateKey.  `say` is told of each training before it starts.  Takes about a minute and 1 GiB.
Result<std::map<std::string, std::vector<KernelRate>>> MeasureKernelRates(
    const Machine& machine, const std::function<void(const std::string&)>& say);

}  // namespace ridge

// What the CPU we run on can do, for kernels that are worth it only there.
#pragma once
#include "hwy/targets.h"

namespace ridge::cpu {

// The AVX-512 build of our kernels is the one that runs.
inline bool RunsAvx512() { return (hwy::SupportedTargets() & (HWY_AVX3 | HWY_AVX3_DL)) != 0; }

}  // namespace ridge::cpu

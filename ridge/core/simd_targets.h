// The instruction sets that our loops of Highway are compiled for: the build's baseline, AVX2,
// AVX-512. More would make the build longer and no supported machine faster.
#pragma once
#include "hwy/detect_targets.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSE4 | HWY_AVX3_DL)

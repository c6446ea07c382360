// AugmentPoints: a source whose point clouds are changed at random, as functions of (seed, epoch,
// index): for training sets alone.
#pragma once
#include "ridge/data/points/point_transforms.h"
#include "ridge/data/source.h"

namespace ridge {

// Whether the source's samples are point clouds, which the source chooses points of.
bool HoldsPoints(const Source& source);

// REQUIRES: HoldsPoints(*source).
SourcePtr AugmentPoints(SourcePtr source, PointAugmentation augmentation);

}  // namespace ridge
